package redis.clients.jedis;

/** Stands in for Jedis; see UnifiedJedis. */
public class JedisPooled extends UnifiedJedis {
    public JedisPooled(HostAndPort at, JedisClientConfig config) {
        super(at, config);
    }
}
