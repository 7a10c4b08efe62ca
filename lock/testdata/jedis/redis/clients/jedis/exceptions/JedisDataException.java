package redis.clients.jedis.exceptions;

/** Stands in for Jedis; see UnifiedJedis. */
public class JedisDataException extends JedisException {
    public JedisDataException(String message) {
        super(message);
    }

    public JedisDataException(Throwable cause) {
        super(cause);
    }
}
