package locksteward

import (
	"fmt"
	"time"
)

// Message is a sentence by its id in package catalogue, with the arguments of this
// occurrence. Package catalogue renders it in English and Chinese. The zero Message is
// none.
type Message struct {
	ID   string `json:"id,omitempty"`
	Args []Arg  `json:"args,omitempty"`
}

// ArgKind is the type of an argument of a [Message].
type ArgKind string

const (
	// ArgLock is the name of a lock: Text, as [DisplayKey] writes it.
	ArgLock ArgKind = "lock"
	// ArgText is any other text: Text.
	ArgText ArgKind = "text"
	// ArgCount is a number of things: Number.
	ArgCount ArgKind = "count"
	// ArgDuration is a duration: Number, in nanoseconds.
	ArgDuration ArgKind = "duration"
	// ArgTime is a moment: Number, in milliseconds since 1970.
	ArgTime ArgKind = "time"
	// ArgMessage is a part of the sentence that is a message itself: Message.
	ArgMessage ArgKind = "message"
)

// Arg is one argument of a [Message].
type Arg struct {
	Kind    ArgKind  `json:"kind"`
	Text    string   `json:"text,omitempty"`
	Number  int64    `json:"number,omitempty"`
	Message *Message `json:"message,omitempty"`
}

// LiteralID is the id of messages whose text is their argument.
const LiteralID = "literal"

// Literal returns a message with the given text, such as that of a rule in the
// configuration. A second text is its Chinese.
func Literal(texts ...string) Message {
	m := Message{ID: LiteralID}
	for _, text := range texts {
		m.Args = append(m.Args, Arg{Kind: ArgText, Text: text})
	}
	return m
}

// LockName returns the name of a lock as an argument.
func LockName(key string) Arg { return Arg{Kind: ArgLock, Text: DisplayKey(key)} }

// NewMessage returns the message of an id with arguments, each of which is an [Arg], a
// [Message], a duration, a time, an integer or a text.
func NewMessage(id string, args ...any) Message {
	m := Message{ID: id}
	if len(args) > 0 {
		m.Args = make([]Arg, len(args))
	}
	for i, arg := range args {
		m.Args[i] = newArg(arg)
	}
	return m
}

func newArg(value any) Arg {
	switch v := value.(type) {
	case Arg:
		return v
	case Message:
		return Arg{Kind: ArgMessage, Message: &v}
	case time.Duration:
		return Arg{Kind: ArgDuration, Number: int64(v)}
	case time.Time:
		return Arg{Kind: ArgTime, Number: v.UnixMilli()}
	case int:
		return Arg{Kind: ArgCount, Number: int64(v)}
	case int64:
		return Arg{Kind: ArgCount, Number: v}
	case string:
		return Arg{Kind: ArgText, Text: v}
	default:
		return Arg{Kind: ArgText, Text: fmt.Sprint(v)}
	}
}

// Duration is the value of an argument of kind [ArgDuration].
func (a Arg) Duration() time.Duration { return time.Duration(a.Number) }

// Time is the value of an argument of kind [ArgTime].
func (a Arg) Time() time.Time { return time.UnixMilli(a.Number) }
