package redis.clients.jedis;

/** Stands in for Jedis; see UnifiedJedis. */
public record HostAndPort(String host, int port) {}
