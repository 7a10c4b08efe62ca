package redis.clients.jedis.exceptions;

/** Stands in for Jedis; see UnifiedJedis. */
public class JedisException extends RuntimeException {
    public JedisException(String message) {
        super(message);
    }

    public JedisException(Throwable cause) {
        super(cause);
    }
}
