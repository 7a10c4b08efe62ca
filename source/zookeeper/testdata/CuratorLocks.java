import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.retry.RetryOneTime;

/** Takes the lock of a recipe, says "held", and releases it when standard input has a line. */
final class CuratorLocks {
    interface Recipe {
        void acquire() throws Exception;

        void release() throws Exception;
    }

    static Recipe recipe(CuratorFramework client, String name, String path) throws Exception {
        switch (name) {
            case "read":
            case "write": {
                InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
                InterProcessMutex side = name.equals("read") ? lock.readLock() : lock.writeLock();
                return of(side::acquire, side::release);
            }
            case "semaphore": {
                InterProcessSemaphoreV2 s = new InterProcessSemaphoreV2(client, path, 1);
                return new Recipe() {
                    private org.apache.curator.framework.recipes.locks.Lease lease;

                    public void acquire() throws Exception {
                        lease = s.acquire();
                    }

                    public void release() {
                        s.returnLease(lease);
                    }
                };
            }
            case "latch": {
                LeaderLatch latch = new LeaderLatch(client, path, "latch-of-a-test");
                return new Recipe() {
                    public void acquire() throws Exception {
                        latch.start();
                        latch.await();
                    }

                    public void release() throws Exception {
                        latch.close();
                        // It deletes its node in the background; a session's requests are answered in their order.
                        client.checkExists().forPath(path);
                    }
                };
            }
            default: {
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                return of(mutex::acquire, mutex::release);
            }
        }
    }

    interface Act {
        void run() throws Exception;
    }

    static Recipe of(Act acquire, Act release) {
        return new Recipe() {
            public void acquire() throws Exception {
                acquire.run();
            }

            public void release() throws Exception {
                release.run();
            }
        };
    }

    public static void main(String[] args) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], 20_000, 10_000, new RetryOneTime(100))) {
            client.start();
            client.blockUntilConnected(20, TimeUnit.SECONDS);
            Recipe lock = recipe(client, args[1], args[2]);
            System.out.println("session " + Long.toHexString(client.getZookeeperClient().getZooKeeper().getSessionId()));
            lock.acquire();
            System.out.println("held");
            System.in.read();
            lock.release();
            System.out.println("free");
        }
    }
}
