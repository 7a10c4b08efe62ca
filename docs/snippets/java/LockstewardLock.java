import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.JedisShardedPubSub;
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
 * lock/{acquire,renew,release}.lua. What it leaves out, as that page allows: the heartbeat.
 *
 * <pre>{@code
 * LockstewardLock lock = new LockstewardLock(jedis, "lock:order:42", 30_000, "billing", "charge card");
 * Long fence = lock.acquire();           // null: another has it; lock.await(10_000) waits in its queue
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

    private static final long GRACE = 300_000;
    private static final long TURN = 150;
    private static final String PREFIX = "locksteward:";
    private static final SecureRandom RANDOM = new SecureRandom();

    private final UnifiedJedis jedis;
    private final String key;
    private final long ttl;
    private final Map<String, String> about = new LinkedHashMap<>();
    private final String instance = random(13);
    private final List<String> keys;
    private final Map<String, String> scripts = new LinkedHashMap<>();

    private String id;
    private String value;
    private long fence;
    private long renewals;
    private long untilNanos;
    private long untilMillis;

    public LockstewardLock(UnifiedJedis jedis, String key, long ttl, String app, String purpose, Path folder) throws IOException {
        this.jedis = jedis;
        this.key = key;
        this.ttl = ttl;
        about.put("v", "2");
        about.put("instance", quote(instance));
        about.put("app", quote(app));
        about.put("host", quote(InetAddress.getLocalHost().getHostName()));
        about.put("pid", Long.toString(ProcessHandle.current().pid()));
        about.put("purpose", quote(purpose));
        about.put("ttl", Long.toString(ttl));
        about.put("renew_every", Long.toString(ttl / 3));
        keys = List.of(key, companion("hold", key), PREFIX + "fence:{" + number(slot(key)) + "}",
                companion("queue", key), companion("waiter", key));
        for (String name : List.of("acquire", "renew", "release")) {
            scripts.put(name, Files.readString(folder.resolve(name + ".lua")));
        }
    }

    /** Takes the lock: its fence, or null if another has it, or is before in its queue. */
    public Long acquire() {
        begin();
        Object reply = attempt("");
        if (fence == 0) {
            value = null;
        }
        return fence == 0 ? null : fence;
    }

    private void begin() {
        id = random(16);
        value = "ls2:" + id + ":" + random(20);
        fence = 0;
        renewals = 0;
    }

    /** A JSON object without its opening brace; its first member is the id. */
    private String metadata(String more) {
        StringBuilder text = new StringBuilder("\"id\":" + quote(id) + more);
        about.forEach((name, json) -> text.append(",\"").append(name).append("\":").append(json));
        return text.append('}').toString();
    }

    /** Asks for the lock, and sets its fence if it was taken. */
    private Object attempt(String waiter) {
        List<String> args = List.of(value, id, Long.toString(ttl), Long.toString(ttl + GRACE), metadata(""), waiter);
        for (int n = 0; ; n++) {
            long nanos = System.nanoTime();
            long millis = System.currentTimeMillis();
            Object reply;
            try {
                reply = run("acquire", keys, args);
            } catch (JedisConnectionException e) {
                if (n == 0) {
                    continue; // the script answers the same request as before
                }
                release(); // it may have been taken
                throw e;
            }
            if (!(reply instanceof List<?> list) || Long.valueOf(2).equals(list.get(0))) {
                fence = Long.parseLong((String) (reply instanceof List<?> list ? list.get(1) : reply));
                lasts(nanos, millis, ttl);
            }
            return reply;
        }
    }

    /** Waits in the queue for up to timeout ms: the fence, or null. */
    public Long await(long timeout) throws InterruptedException {
        begin();
        long end = System.nanoTime() + timeout * 1_000_000;
        long since = 0;
        String proof = random(13);
        var messages = new LinkedBlockingQueue<String[]>();
        Runnable unsubscribe = listen(messages);
        try {
            for (int n = 1; ; n++) {
                String nonce = proof + n; // proves that a hand-off is younger than this attempt
                long nanos = System.nanoTime();
                long millis = System.currentTimeMillis();
                Object reply = attempt(since + " " + nonce + " - " + instance);
                if (fence != 0) {
                    return fence;
                }
                List<?> held = (List<?>) reply;
                since = (Long) held.get(3);
                long left = (Long) held.get(1) >= 0 ? (Long) held.get(1) + 2 + Math.max(0, (Long) held.get(2)) * TURN : 1000;
                long again = Math.min(end, System.nanoTime() + Math.min(1000, left) * 1_000_000);
                while (System.nanoTime() < again) {
                    String[] word = messages.poll(again - System.nanoTime(), TimeUnit.NANOSECONDS);
                    if (word == null || !word[1].equals(id)) {
                        continue;
                    }
                    if (word[0].equals("yours")) {
                        if (word[3].equals(nonce)) {
                            fence = Long.parseLong(word[2]);
                            lasts(nanos, millis, Math.min(TURN, ttl));
                            if (renew(0, "") == Renewal.RENEWED) { // it was handed over for a turn only
                                return fence;
                            }
                            fence = 0;
                        }
                        break; // an attempt finds out, and makes the lock last
                    }
                    if (word[0].equals("turn")) {
                        again = Math.min(end, System.nanoTime() + Long.parseLong(word[2]) * TURN * 1_000_000);
                    }
                }
                if (System.nanoTime() >= end) {
                    release(); // out of the queue first: a release may have handed the lock over
                    value = null;
                    return null;
                }
            }
        } finally {
            unsubscribe.run();
        }
    }

    /** Receives what releases send to a waiter, from before it enters the queue. Returns what ends that. */
    private Runnable listen(Queue<String[]> messages) throws InterruptedException {
        var subscribed = new CountDownLatch(1);
        Runnable receive;
        Runnable end;
        if (jedis instanceof JedisCluster cluster) { // there on a sharded channel
            var listener = new JedisShardedPubSub() {
                @Override
                public void onSSubscribe(String channel, int count) {
                    subscribed.countDown();
                }

                @Override
                public void onSMessage(String channel, String message) {
                    messages.add((message + "    ").split(" ", -1));
                }
            };
            receive = () -> cluster.ssubscribe(listener, companion("wake", key) + ":" + instance);
            end = listener::sunsubscribe;
        } else {
            var listener = new JedisPubSub() {
                @Override
                public void onSubscribe(String channel, int count) {
                    subscribed.countDown();
                }

                @Override
                public void onMessage(String channel, String message) {
                    messages.add((message + "    ").split(" ", -1));
                }
            };
            receive = () -> jedis.subscribe(listener, PREFIX + "instance:" + instance);
            end = listener::unsubscribe;
        }
        var thread = new Thread(receive);
        thread.setDaemon(true);
        thread.start();
        return subscribed.await(3, TimeUnit.SECONDS) ? end : () -> {};
    }

    /** How scripts notify waiters. */
    private String publish() {
        return jedis instanceof JedisCluster ? "SPUBLISH" : "PUBLISH";
    }

    /** Whether the lock is held for certain. Look before each step: nothing else tells a process that was paused. */
    public boolean valid() {
        return value != null && System.nanoTime() - untilNanos < 0 && System.currentTimeMillis() < untilMillis;
    }

    public Renewal renew() {
        renewals++;
        return renew(renewals, ",\"seq\":" + renewals + ",\"renewals\":" + renewals);
    }

    private Renewal renew(long seq, String more) {
        if (!valid()) {
            return Renewal.LOST;
        }
        long nanos = System.nanoTime();
        long millis = System.currentTimeMillis();
        Object reply;
        try {
            reply = run("renew", keys.subList(0, 2), List.of(
                    value, Long.toString(ttl), Long.toString(GRACE), Long.toString(fence), Long.toString(seq), "-1", metadata(more)));
        } catch (JedisConnectionException e) {
            return Renewal.UNKNOWN;
        }
        if (!Long.valueOf(1).equals(reply)) {
            untilNanos = System.nanoTime();
            untilMillis = 0;
            return Renewal.LOST;
        }
        lasts(nanos, millis, ttl);
        return Renewal.RENEWED;
    }

    /**
     * Frees the lock if it is still this hold's, or hands it to the next waiter. UNKNOWN: no reply came; the
     * lock is free at the end of its TTL at the latest.
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
                Object reply = run("release", keys, List.of(mine, publish()));
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
    private void lasts(long nanos, long millis, long ms) {
        long left = ms - ms / 100 - 2;
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

    /** A JSON string. */
    private static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        text.chars().forEach(c -> out.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", c) : Character.toString(c)));
        return out.append('"').toString();
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

    /** By hand: java -cp LIBRARIES LockstewardLock.java URL KEY SECONDS, then acquire, wait, renew, valid, release.
     *  URL begins with redis:// or redis+cluster://. */
    public static void main(String[] args) throws IOException, InterruptedException {
        URI url = URI.create(args[0]);
        String folder = System.getenv().getOrDefault("SCRIPTS", "lock");
        var config = redis.clients.jedis.DefaultJedisClientConfig.builder().timeoutMillis(500).build();
        var at = new redis.clients.jedis.HostAndPort(url.getHost(), url.getPort());
        boolean cluster = url.getScheme().equals("redis+cluster");
        try (UnifiedJedis jedis = cluster ? new JedisCluster(Set.of(at), config) : new JedisPooled(at, config);
                var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            var lock = new LockstewardLock(
                    jedis, args[1], (long) (Double.parseDouble(args[2]) * 1000), "snippet", "by hand", Path.of(folder));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                Object answer;
                try {
                    answer = switch (line.trim()) {
                        case "acquire" -> lock.acquire();
                        case "wait" -> lock.await(20_000);
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
