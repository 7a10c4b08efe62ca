package redis.clients.jedis;

/** Stands in for Jedis; see UnifiedJedis. */
public abstract class JedisPubSub {
    Subscription subscription;

    public void onMessage(String channel, String message) {}

    public void onSubscribe(String channel, int subscribedChannels) {}

    public void unsubscribe() {
        subscription.end("UNSUBSCRIBE");
    }
}
