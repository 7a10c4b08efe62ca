package redis.clients.jedis.exceptions;

/** Stands in for Jedis; see UnifiedJedis. */
public class JedisConnectionException extends JedisException {
    public JedisConnectionException(String message) {
        super(message);
    }

    public JedisConnectionException(Throwable cause) {
        super(cause);
    }
}
