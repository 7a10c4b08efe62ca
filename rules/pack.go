package rules

import (
	"encoding/binary"
	"slices"

	"github.com/locksteward/locksteward"
)

// A finding is kept with its messages packed: numbers have a variable length, and an id
// that the first finding of the kind has too is its number there.

// argKinds are the kinds of arguments by their packed number. Others are packed as text.
var argKinds = []locksteward.ArgKind{
	locksteward.ArgText, locksteward.ArgLock, locksteward.ArgCount, locksteward.ArgDuration, locksteward.ArgTime, locksteward.ArgMessage,
}

// idsOf returns the ids of messages and of their parts, each once.
func idsOf(messages []locksteward.Message) []string {
	var ids []string
	var add func(m locksteward.Message)
	add = func(m locksteward.Message) {
		if !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
		for _, arg := range m.Args {
			if arg.Message != nil {
				add(*arg.Message)
			}
		}
	}
	for _, m := range messages {
		add(m)
	}
	return ids
}

func packString(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// packAll packs several messages; nil is packed as such.
func packAll(out []byte, ids []string, messages []locksteward.Message) []byte {
	if messages == nil {
		return binary.AppendUvarint(out, 0)
	}
	out = binary.AppendUvarint(out, uint64(len(messages))+1)
	for _, m := range messages {
		out = pack(out, ids, m)
	}
	return out
}

// pack packs one message: its id, how many arguments it has, and these.
func pack(out []byte, ids []string, m locksteward.Message) []byte {
	if i := slices.Index(ids, m.ID); i >= 0 {
		out = binary.AppendUvarint(out, uint64(i)+1)
	} else {
		out = packString(binary.AppendUvarint(out, 0), m.ID)
	}
	out = binary.AppendUvarint(out, uint64(len(m.Args)))
	for _, arg := range m.Args {
		out = append(out, byte(max(0, slices.Index(argKinds, arg.Kind))))
		switch arg.Kind {
		case locksteward.ArgMessage:
			var part locksteward.Message
			if arg.Message != nil {
				part = *arg.Message
			}
			out = pack(out, ids, part)
		case locksteward.ArgCount, locksteward.ArgDuration, locksteward.ArgTime:
			out = binary.AppendVarint(out, arg.Number)
		default:
			out = packString(out, arg.Text)
		}
	}
	return out
}

// unpacker reads what pack wrote.
type unpacker struct {
	ids  []string
	rest string
}

func (u *unpacker) uvarint() uint64 {
	var n uint64
	for shift := 0; ; shift += 7 {
		b := u.rest[0]
		u.rest = u.rest[1:]
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

func (u *unpacker) varint() int64 {
	n := u.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) text() string {
	n := u.uvarint()
	text := u.rest[:n]
	u.rest = u.rest[n:]
	return text
}

func (u *unpacker) messages() []locksteward.Message {
	n := u.uvarint()
	if n == 0 {
		return nil
	}
	out := make([]locksteward.Message, n-1)
	for i := range out {
		out[i] = u.message()
	}
	return out
}

func (u *unpacker) message() locksteward.Message {
	var m locksteward.Message
	if i := u.uvarint(); i > 0 {
		m.ID = u.ids[i-1]
	} else {
		m.ID = u.text()
	}
	if n := u.uvarint(); n > 0 {
		m.Args = make([]locksteward.Arg, n)
	}
	for i := range m.Args {
		m.Args[i] = u.arg()
	}
	return m
}

func (u *unpacker) arg() locksteward.Arg {
	arg := locksteward.Arg{Kind: argKinds[u.rest[0]]}
	u.rest = u.rest[1:]
	switch arg.Kind {
	case locksteward.ArgMessage:
		m := u.message()
		arg.Message = &m
	case locksteward.ArgCount, locksteward.ArgDuration, locksteward.ArgTime:
		arg.Number = u.varint()
	default:
		arg.Text = u.text()
	}
	return arg
}
