package redis.clients.jedis;

/** Stands in for Jedis; see UnifiedJedis. */
public record DefaultJedisClientConfig(int timeoutMillis) implements JedisClientConfig {
    public static Builder builder() {
        return new Builder();
    }

    /** Stands in for Jedis. */
    public static final class Builder {
        private int timeout = 2000;

        public Builder timeoutMillis(int millis) {
            timeout = millis;
            return this;
        }

        public DefaultJedisClientConfig build() {
            return new DefaultJedisClientConfig(timeout);
        }
    }
}
