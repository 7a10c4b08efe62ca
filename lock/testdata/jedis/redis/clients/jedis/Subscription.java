package redis.clients.jedis;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** Receives messages over a connection of its own; see UnifiedJedis. */
final class Subscription {
    private final UnifiedJedis own;

    Subscription(HostAndPort at, JedisClientConfig config) {
        own = new UnifiedJedis(at, config);
    }

    /** Returns when end has been answered. */
    void run(String command, String[] channels, BiConsumer<String, Integer> subscribed, BiConsumer<String, String> received) {
        try (own) {
            List<String> words = new ArrayList<>(List.of(command));
            words.addAll(List.of(channels));
            own.open(0);
            own.write(words);
            while (own.read() instanceof List<?> push && !push.get(0).toString().endsWith("unsubscribe")) {
                if (push.get(0).toString().endsWith("message")) {
                    received.accept((String) push.get(1), (String) push.get(2));
                } else {
                    subscribed.accept((String) push.get(1), ((Long) push.get(2)).intValue());
                }
            }
        } catch (IOException e) {
            throw new JedisConnectionException(e);
        }
    }

    void end(String command) {
        try {
            own.write(List.of(command));
        } catch (IOException e) {
            throw new JedisConnectionException(e);
        }
    }
}
