package redis.clients.jedis;

/** Stands in for Jedis; see UnifiedJedis. */
public abstract class JedisShardedPubSub {
    Subscription subscription;

    public void onSMessage(String channel, String message) {}

    public void onSSubscribe(String channel, int subscribedChannels) {}

    public void sunsubscribe() {
        subscription.end("SUNSUBSCRIBE");
    }
}
