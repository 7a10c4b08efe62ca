package redis.clients.jedis;

/** Stands in for Jedis; see UnifiedJedis. */
public interface JedisClientConfig {
    int timeoutMillis();
}
