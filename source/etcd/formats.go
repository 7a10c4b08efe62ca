package etcdsource

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
)

// unknown is the library of a lock that no format describes.
const unknown = "unknown"

// format is what a lock's key and value say.
type format struct {
	library    string
	confidence locksteward.Confidence
	holder     locksteward.Holder
	acquired   time.Time // as the value says
	asked      bool      // acquired is when it was asked for
}

// queueOf returns the name of the queue that a key is in: <name>/<its own lease in hex>,
// which nothing else writes.
func queueOf(e *entry) (string, bool) {
	i := strings.LastIndexByte(e.key, '/')
	if e.lease == 0 || i <= 0 || e.key[i+1:] != strconv.FormatInt(e.lease, 16) {
		return "", false
	}
	return e.key[:i], true
}

// recognise says who wrote a key. queue is whether the key is in a queue.
func recognise(name string, e *entry, queue bool) format {
	value := string(e.value)
	if queue {
		switch {
		case strings.HasSuffix(name, "core/lock"):
			return format{library: "vault", confidence: locksteward.ConfidenceHigh, holder: locksteward.Holder{Session: word(value)}}
		case value == "":
			return format{library: "etcd-mutex", confidence: locksteward.ConfidenceHigh}
		}
		return format{library: "etcd-election", confidence: locksteward.ConfidenceHigh, holder: locksteward.Holder{Host: word(value)}}
	}
	if at, host, ok := shedLock(value); ok {
		return format{library: "shedlock", confidence: locksteward.ConfidenceHigh, holder: locksteward.Holder{Host: host}, acquired: at}
	}
	if at, host, ok := uuid1(e.value); ok && !e.cut {
		return format{library: "python-etcd3", confidence: locksteward.ConfidenceHigh, holder: locksteward.Holder{Host: host}, acquired: at, asked: true}
	}
	if strings.HasPrefix(name, "/tooz/locks") && uuid4(e.value) && !e.cut {
		return format{library: "tooz", confidence: locksteward.ConfidenceHigh} // openstack/tooz, tooz/drivers/etcd3gw.py
	}
	if len(value) == 36 {
		if raw, err := hex.DecodeString(strings.ReplaceAll(value, "-", "")); err == nil {
			if at, host, ok := uuid1(raw); ok {
				return format{library: "etcd3gw", confidence: locksteward.ConfidenceHigh, holder: locksteward.Holder{Host: host}, acquired: at, asked: true}
			}
		}
	}
	switch {
	case e.lease != 0 && value != "" && strings.HasSuffix(name, "/leader"):
		return format{library: "patroni", confidence: locksteward.ConfidenceMedium, holder: locksteward.Holder{Host: word(value)}}
	case e.lease != 0 && value == "":
		return format{library: "node-etcd3", confidence: locksteward.ConfidenceMedium}
	}
	return format{library: unknown, confidence: locksteward.ConfidenceLow}
}

// shedLock splits ADDED:<RFC 3339>@<host>.
func shedLock(value string) (at time.Time, host string, ok bool) {
	rest, ok := strings.CutPrefix(value, "ADDED:")
	stamp, host, found := strings.Cut(rest, "@")
	if !ok || !found {
		return time.Time{}, "", false
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	return at.UTC(), word(host), err == nil
}

// gregorian is how many 100 ns are from 1582-10-15, with which UUIDs begin, to 1970.
const gregorian = 0x01b21dd213814000

// uuid1 reads a UUID of version 1: when it was made, and the address of a network card of
// the host.
func uuid1(raw []byte) (at time.Time, host string, ok bool) {
	if len(raw) != 16 || raw[6]>>4 != 1 || raw[8]>>6 != 2 {
		return time.Time{}, "", false
	}
	ticks := int64(binary.BigEndian.Uint16(raw[6:])&0x0fff)<<48 | int64(binary.BigEndian.Uint16(raw[4:]))<<32 | int64(binary.BigEndian.Uint32(raw))
	ticks -= gregorian
	at = time.Unix(ticks/1e7, ticks%1e7*100).UTC()
	if mac := raw[10:]; mac[0]&1 == 0 { // else it is random: the host's card was not found
		host = fmt.Sprintf("mac %x:%x:%x:%x:%x:%x", mac[:1], mac[1:2], mac[2:3], mac[3:4], mac[4:5], mac[5:])
	}
	return at, host, true
}

// uuid4 reports whether raw is a UUID of version 4: random.
func uuid4(raw []byte) bool { return len(raw) == 16 && raw[6]>>4 == 4 && raw[8]>>6 == 2 }

// word returns a value that may name a host, a member or a candidate, "" for other text.
func word(value string) string {
	odd := func(r rune) bool {
		return r <= ' ' || r == utf8.RuneError || strings.ContainsRune(`{}[]"'<>`, r) || !strconv.IsPrint(r)
	}
	if len(value) > 128 || strings.ContainsFunc(value, odd) {
		return ""
	}
	return value
}

// digest is what identifies a hold.
func (e *entry) digest(key locksteward.DigestKey) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %d %s", e.create, e.lease, e.key)
	return key.Value(b.Bytes())
}
