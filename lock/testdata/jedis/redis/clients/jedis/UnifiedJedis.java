package redis.clients.jedis;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/**
 * The few methods of Jedis that docs/snippets/java uses, with the signatures and results that Jedis 5
 * documents, over one connection: for machines that cannot fetch Jedis. It runs the snippet against a real
 * server; it does not show that Jedis is as it says.
 */
public class UnifiedJedis implements AutoCloseable {
    private final HostAndPort at;
    private final JedisClientConfig config;
    private Socket socket;
    private InputStream in;

    UnifiedJedis(HostAndPort at, JedisClientConfig config) {
        this.at = at;
        this.config = config;
    }

    public Object eval(String script, List<String> keys, List<String> args) {
        return call(words("EVAL", script, keys, args), keys.get(0));
    }

    public Object evalsha(String sha1, List<String> keys, List<String> args) {
        return call(words("EVALSHA", sha1, keys, args), keys.get(0));
    }

    /** Returns when listener has unsubscribed. */
    public void subscribe(JedisPubSub listener, String... channels) {
        listener.subscription = new Subscription(at, config);
        listener.subscription.run("SUBSCRIBE", channels, listener::onSubscribe, listener::onMessage);
    }

    @Override
    public void close() {
        try {
            if (socket != null) {
                socket.close();
            }
        } catch (IOException e) {
            // It is not used any more.
        }
        socket = null;
    }

    private static List<String> words(String name, String script, List<String> keys, List<String> args) {
        List<String> words = new ArrayList<>(List.of(name, script, Integer.toString(keys.size())));
        words.addAll(keys);
        words.addAll(args);
        return words;
    }

    /** Sends a command whose first key is key, and returns the reply. */
    Object call(List<String> words, String key) {
        try {
            open(config.timeoutMillis());
            write(words);
            return read();
        } catch (IOException e) {
            close();
            throw new JedisConnectionException(e);
        }
    }

    void open(int timeoutMillis) throws IOException {
        if (socket == null) {
            socket = new Socket();
            socket.connect(new InetSocketAddress(at.host(), at.port()), config.timeoutMillis());
            socket.setSoTimeout(timeoutMillis);
            in = new BufferedInputStream(socket.getInputStream());
        }
    }

    void write(List<String> words) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(("*" + words.size() + "\r\n").getBytes(StandardCharsets.US_ASCII));
        for (String word : words) {
            byte[] raw = word.getBytes(StandardCharsets.UTF_8);
            out.writeBytes(("$" + raw.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
            out.writeBytes(raw);
            out.writeBytes(new byte[] {'\r', '\n'});
        }
        socket.getOutputStream().write(out.toByteArray());
    }

    Object read() throws IOException {
        String line = line();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+':
                return rest;
            case '-':
                throw new JedisDataException(rest);
            case ':':
                return Long.valueOf(rest);
            case '$':
                int size = Integer.parseInt(rest);
                if (size < 0) {
                    return null;
                }
                byte[] raw = in.readNBytes(size + 2);
                return new String(raw, 0, size, StandardCharsets.UTF_8);
            case '*':
                List<Object> list = new ArrayList<>();
                for (int i = Integer.parseInt(rest); i > 0; i--) {
                    list.add(read());
                }
                return list;
            default:
                throw new IOException("unknown reply " + line);
        }
    }

    private String line() throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int b = in.read(); b != '\n'; b = in.read()) {
            if (b < 0) {
                throw new EOFException();
            }
            out.write(b);
        }
        return out.toString(StandardCharsets.UTF_8).strip();
    }
}
