package redis.clients.jedis.util;

/** Stands in for Jedis; see UnifiedJedis. CRC-16/XMODEM of the hash tag, by Redis's Cluster specification. */
public final class JedisClusterCRC16 {
    private JedisClusterCRC16() {}

    public static int getSlot(byte[] key) {
        int from = 0;
        int to = key.length;
        for (int i = 0; i < key.length; i++) {
            if (key[i] != '{') {
                continue;
            }
            for (int j = i + 1; j < key.length; j++) {
                if (key[j] == '}') {
                    if (j > i + 1) {
                        from = i + 1;
                        to = j;
                    }
                    break;
                }
            }
            break;
        }
        int crc = 0;
        for (int i = from; i < to; i++) {
            crc ^= (key[i] & 0xff) << 8;
            for (int bit = 0; bit < 8; bit++) {
                crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
            }
            crc &= 0xffff;
        }
        return crc % 16384;
    }
}
