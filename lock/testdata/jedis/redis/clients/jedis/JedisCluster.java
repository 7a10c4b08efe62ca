package redis.clients.jedis;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.util.JedisClusterCRC16;

/** Stands in for Jedis; see UnifiedJedis. It learns from MOVED where a slot is. */
public class JedisCluster extends UnifiedJedis {
    private final HostAndPort first;
    private final JedisClientConfig config;
    private final Map<Integer, HostAndPort> slots = new HashMap<>();
    private final Map<HostAndPort, UnifiedJedis> nodes = new HashMap<>();

    public JedisCluster(Set<HostAndPort> some, JedisClientConfig config) {
        super(some.iterator().next(), config);
        first = some.iterator().next();
        this.config = config;
    }

    public void ssubscribe(JedisShardedPubSub listener, String... channels) {
        HostAndPort at;
        synchronized (this) {
            call(List.of("EXISTS", channels[0]), channels[0]); // learns where the slot is
            at = slots.getOrDefault(slot(channels[0]), first);
        }
        listener.subscription = new Subscription(at, config);
        listener.subscription.run("SSUBSCRIBE", channels, listener::onSSubscribe, listener::onSMessage);
    }

    @Override
    synchronized Object call(List<String> words, String key) {
        while (true) {
            HostAndPort at = slots.getOrDefault(slot(key), first);
            try {
                return nodes.computeIfAbsent(at, node -> new UnifiedJedis(node, config)).call(words, key);
            } catch (JedisDataException e) {
                if (!e.getMessage().startsWith("MOVED ")) {
                    throw e;
                }
                String moved = e.getMessage().split(" ")[2];
                int colon = moved.lastIndexOf(':');
                slots.put(slot(key), new HostAndPort(moved.substring(0, colon), Integer.parseInt(moved.substring(colon + 1))));
            }
        }
    }

    @Override
    public void close() {
        nodes.values().forEach(UnifiedJedis::close);
    }

    private static int slot(String key) {
        return JedisClusterCRC16.getSlot(key.getBytes(StandardCharsets.UTF_8));
    }
}
