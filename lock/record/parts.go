package record

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// encode returns "<id> <holder> <fence> <deadline>", "-" for what is not known.
// It is text, not JSON, because the acquire script writes it and numbers above
// 10^14 would lose digits in Lua's JSON.
func (l *Lost) encode() string {
	return fmt.Sprintf("%s %s %d %d", dash(l.ID), dash(l.Holder), l.Fence, l.Deadline)
}

func decodeLost(text string) (*Lost, error) {
	parts := strings.Split(clip(text, MaxText), " ")
	if len(parts) < 4 {
		return nil, errors.New(`want "<id> <holder> <fence> <deadline>"`)
	}
	fence, err := parseNumber(parts[2])
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	deadline, err := parseNumber(parts[3])
	if err != nil {
		return nil, fmt.Errorf("deadline: %w", err)
	}
	return &Lost{ID: undash(parts[0]), Holder: undash(parts[1]), Fence: fence, Deadline: deadline}, nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func undash(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// EncodeKeys returns "<length>:<key>" for each key, separated by spaces;
// lengths are in bytes, so that a key may have any bytes.
func EncodeKeys(keys []string) string {
	var b []byte
	for i, key := range keys {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(len(key)), 10)
		b = append(b, ':')
		b = append(b, key...)
	}
	return string(b)
}

// decodeKeys returns the keys it could read, at most [MaxHolding], also when it
// returns an error.
func decodeKeys(text string) ([]string, error) {
	var keys []string
	for text != "" {
		if len(keys) == MaxHolding {
			return keys, fmt.Errorf("more than %d keys", MaxHolding)
		}
		head, _, found := strings.Cut(clip(text, 20), ":")
		if !found {
			return keys, errors.New("want <length>:<key>")
		}
		size, err := parseNumber(head)
		if err != nil {
			return keys, fmt.Errorf("length: %w", err)
		}
		rest := text[len(head)+1:]
		if size > int64(len(rest)) {
			return keys, errors.New("length runs past the end")
		}
		keys = append(keys, rest[:size])
		text = rest[size:]
		if text != "" {
			if text[0] != ' ' || len(text) == 1 {
				return keys, errors.New("want one space between keys")
			}
			text = text[1:]
		}
	}
	return keys, nil
}
