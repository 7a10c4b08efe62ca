import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.JedisClusterCRC16;

/**
 * A lock that Locksteward can read, in Java with Jedis.
 *
 * <p>It follows docs/wire-format.md: token, metadata and fence are written by one script, renewed by
 * another, and released by a third that compares first. Copy this file and
 * lock/{acquire,renew,release}.lua. What it leaves out, as that page allows: the queue of waiters,
 * grants, the heartbeat.
 *
 * <pre>{@code
 * LockstewardLock lock = new LockstewardLock(jedis, "lock:order:42", 30_000, "billing", "charge card");
 * Long fence = lock.acquire();           // null: another has it
 * if (fence == null) return;
 * try {
 *     while (workLeft() && lock.valid()) {
 *         step(fence);                   // let what you write to refuse a smaller fence
 *         lock.renew();                  // at least every third of the TTL
 *     }
 * } finally {
 *     lock.release();                    // RELEASED, LOST or UNKNOWN
 * }
 * }</pre>
 *
 * One object is one acquisition at a time, and not for several threads at once.
 */
public final class LockstewardLock {
    public enum Outcome { RELEASED, LOST, UNKNOWN }

    /** RENEWED; LOST: stop working; UNKNOWN: no reply, try again while valid(). */
    public enum Renewal { RENEWED, LOST, UNKNOWN }

    private static final long META_GRACE = 300_000;
    private static final String PREFIX = "locksteward:";
    private static final SecureRandom RANDOM = new SecureRandom();

    private final UnifiedJedis jedis;
    private final String key;
    private final long ttl;
    private final Map<String, String> about = new LinkedHashMap<>();
    private final String meta;
    private final String queue;
    private final String waiter;
    private final String counter;
    private final Map<String, String> scripts = new LinkedHashMap<>();

    private String id;
    private String value;
    private long failures;
    private long untilNanos;
    private long untilMillis;

    public LockstewardLock(UnifiedJedis jedis, String key, long ttl, String app, String purpose, Path folder) throws IOException {
        this.jedis = jedis;
        this.key = key;
        this.ttl = ttl;
        about.put("v", "1");
        about.put("app", app);
        about.put("host", InetAddress.getLocalHost().getHostName());
        about.put("pid", Long.toString(ProcessHandle.current().pid()));
        about.put("purpose", purpose);
        about.put("ttl", Long.toString(ttl));
        about.put("renew_every", Long.toString(ttl / 3));
        meta = companion("meta", key);
        queue = companion("wait", key);
        waiter = companion("waiter", key);
        counter = PREFIX + "fence:{" + number(slot(key)) + "}";
        for (String name : List.of("acquire", "renew", "release")) {
            scripts.put(name, Files.readString(folder.resolve(name + ".lua")));
        }
    }

    /** Takes the lock: its fence, or null if another has it, or is before in its queue. */
    public Long acquire() {
        id = random(16);
        value = "ls1:" + id + ":" + random(20);
        List<String> args = new ArrayList<>(List.of(
                value, id, Long.toString(ttl), Long.toString(ttl + META_GRACE), "0 0 0 150 - - -", "", ""));
        about.forEach((name, text) -> {
            if (!text.isEmpty()) {
                args.add(name);
                args.add(text);
            }
        });
        for (int attempt = 0; ; attempt++) {
            long nanos = System.nanoTime();
            long millis = System.currentTimeMillis();
            Object reply;
            try {
                reply = run("acquire", List.of(key, meta, counter, queue, waiter), args);
            } catch (JedisConnectionException e) {
                if (attempt == 0) {
                    continue; // the script answers the same request as before
                }
                release(); // it may have been taken
                throw e;
            }
            if (reply instanceof List<?> list && !Long.valueOf(2).equals(list.get(0))) {
                value = null;
                return null;
            }
            lasts(nanos, millis);
            return Long.valueOf((String) (reply instanceof List<?> list ? list.get(1) : reply));
        }
    }

    /** Whether the lock is held for certain. Look before each step: nothing else tells a process that was paused. */
    public boolean valid() {
        return value != null && System.nanoTime() - untilNanos < 0 && System.currentTimeMillis() < untilMillis;
    }

    public Renewal renew() {
        if (!valid()) {
            return Renewal.LOST;
        }
        long nanos = System.nanoTime();
        long millis = System.currentTimeMillis();
        Object reply;
        try {
            reply = run("renew", List.of(key, meta), List.of(
                    value, id, Long.toString(ttl), Long.toString(META_GRACE), Long.toString(failures), "-1", "0"));
        } catch (JedisConnectionException e) {
            failures++;
            return Renewal.UNKNOWN;
        }
        failures = 0;
        if (!Long.valueOf(1).equals(reply)) {
            untilNanos = System.nanoTime();
            untilMillis = 0;
            return Renewal.LOST;
        }
        lasts(nanos, millis);
        return Renewal.RENEWED;
    }

    /**
     * Frees the lock if it is still this hold's, and wakes who waits. UNKNOWN: no reply came; the lock is
     * free at the end of its TTL at the latest. With a JedisCluster write
     * SPUBLISH for PUBLISH: waiters of a Cluster listen on a sharded channel.
     */
    public Outcome release() {
        String mine = value;
        value = null;
        if (mine == null) {
            return Outcome.LOST;
        }
        boolean doubt = false;
        for (int attempt = 0; attempt < 2; attempt++) {
            try {
                Object reply = run("release", List.of(key, meta, queue, waiter), List.of(mine, "PUBLISH"));
                // Gone after a release without a reply: that one freed it, or its time was over.
                boolean freed = Long.valueOf(1).equals(reply) || doubt && Long.valueOf(0).equals(reply);
                return freed ? Outcome.RELEASED : Outcome.LOST;
            } catch (JedisConnectionException e) {
                doubt = true;
            }
        }
        return Outcome.UNKNOWN;
    }

    /** The lease counts from before the request, less 1 % and 2 ms, by both clocks: one stands while a machine sleeps. */
    private void lasts(long nanos, long millis) {
        long left = ttl - ttl / 100 - 2;
        untilNanos = nanos + left * 1_000_000;
        untilMillis = millis + left;
    }

    private Object run(String name, List<String> keys, List<String> args) {
        String script = scripts.get(name);
        try {
            return jedis.evalsha(sha1(script), keys, args);
        } catch (JedisDataException e) {
            if (e.getMessage() == null || !e.getMessage().startsWith("NOSCRIPT")) {
                throw e;
            }
            return jedis.eval(script, keys, args);
        }
    }

    private static String companion(String kind, String key) {
        String tag = tag(key);
        return PREFIX + kind + ":{" + tag + "}" + (tag.equals(key) ? "" : ":" + key);
    }

    private static String tag(String key) {
        int start = key.indexOf('{');
        int end = start < 0 ? -1 : key.indexOf('}', start + 1);
        if (end > start + 1) {
            return key.substring(start + 1, end);
        }
        return !key.isEmpty() && key.indexOf('}') < 0 ? key : number(slot(key));
    }

    private static int slot(String key) {
        return JedisClusterCRC16.getSlot(key.getBytes(StandardCharsets.UTF_8));
    }

    /** The smallest decimal number in a hash slot. */
    private static String number(int slot) {
        int n = 0;
        while (slot(Integer.toString(n)) != slot) {
            n++;
        }
        return Integer.toString(n);
    }

    private static String random(int bytes) {
        byte[] raw = new byte[bytes];
        RANDOM.nextBytes(raw);
        return HexFormat.of().formatHex(raw);
    }

    private static String sha1(String text) {
        try {
            byte[] sum = java.security.MessageDigest.getInstance("SHA-1").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(sum);
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    /** By hand: java -cp LIBRARIES LockstewardLock.java URL KEY SECONDS, then acquire, renew, valid, release. */
    public static void main(String[] args) throws IOException {
        URI url = URI.create(args[0]);
        String folder = System.getenv().getOrDefault("SCRIPTS", "lock");
        var config = redis.clients.jedis.DefaultJedisClientConfig.builder().timeoutMillis(500).build();
        try (var jedis = new JedisPooled(new redis.clients.jedis.HostAndPort(url.getHost(), url.getPort()), config);
                var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            var lock = new LockstewardLock(
                    jedis, args[1], (long) (Double.parseDouble(args[2]) * 1000), "snippet", "by hand", Path.of(folder));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                Object answer;
                try {
                    answer = switch (line.trim()) {
                        case "acquire" -> lock.acquire();
                        case "renew" -> lock.renew();
                        case "valid" -> lock.valid();
                        case "release" -> lock.release();
                        default -> "unknown command";
                    };
                } catch (JedisException e) {
                    answer = e.getClass().getSimpleName();
                }
                System.out.println(answer);
                System.out.flush();
            }
        }
    }
}
