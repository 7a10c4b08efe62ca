package record

import (
	"errors"
	"fmt"
	"strings"
)

// encode returns "<id> <holder> <fence> <deadline>", "-" for what is not known,
// and " offered" behind it for a hand-off that was never confirmed. It is one
// text because the acquire script writes it.
func (l *Lost) encode() string {
	text := fmt.Sprintf("%s %s %d %d", dash(l.ID), dash(l.Holder), l.Fence, l.Deadline)
	if l.Offered {
		text += " offered"
	}
	return text
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
	return &Lost{
		ID: undash(parts[0]), Holder: undash(parts[1]), Fence: fence, Deadline: deadline,
		Offered: len(parts) > 4 && parts[4] == "offered",
	}, nil
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
