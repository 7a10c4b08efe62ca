// Package hashslot has the hash slots of Redis Cluster (Redis Cluster specification,
// "Key distribution model").
package hashslot

import (
	"strconv"
	"strings"
	"sync"
)

// Count is the number of hash slots of a Cluster.
const Count = 16384

// Of returns the hash slot of key: CRC16 (XMODEM) of its hash tag, or of all of it,
// modulo Count.
func Of(key string) int {
	if tag, ok := Tag(key); ok {
		key = tag
	}
	return int(crc16(key)) % Count
}

// Tag returns the hash tag of key: what is between the first { and the first } after
// it. It is not ok if that is empty, or not there.
func Tag(key string) (tag string, ok bool) {
	_, behind, _ := strings.Cut(key, "{")
	tag, _, ok = strings.Cut(behind, "}")
	return tag, ok && tag != ""
}

// Number returns the smallest decimal number whose slot that is.
func Number(slot int) string { return numbers()[slot] }

var numbers = sync.OnceValue(func() []string {
	table := make([]string, Count)
	var text []byte
	for n, missing := 0, Count; missing > 0; n++ {
		text = strconv.AppendInt(text[:0], int64(n), 10)
		if s := int(crc16(text)) % Count; table[s] == "" {
			table[s] = string(text)
			missing--
		}
	}
	return table
})

// crcTable has the CRC of each byte.
var crcTable = sync.OnceValue(func() *[256]uint16 {
	var table [256]uint16
	for i := range table {
		table[i] = uint16(i) << 8
		for range 8 {
			table[i] = table[i]<<1 ^ table[i]>>15*0x1021
		}
	}
	return &table
})

// crc16 is CRC-16/XMODEM: polynomial 0x1021, initial value 0, not reflected.
func crc16[T string | []byte](s T) (crc uint16) {
	table := crcTable()
	for i := range len(s) {
		crc = crc<<8 ^ table[byte(crc>>8)^s[i]]
	}
	return crc
}
