package formats

import "strings"

// What asynq's keys have in common (hibiken/asynq internal/base/base.go): those
// of one queue begin with asynq:{<queue>}:.

// asynqQueue splits asynq:{<queue>}:<rest>.
func asynqQueue(key string) (prefix, rest string, ok bool) {
	inner, ok := strings.CutPrefix(key, "asynq:{")
	queue, rest, cut := strings.Cut(inner, "}:")
	if !ok || !cut || queue == "" {
		return "", "", false
	}
	return "asynq:{" + queue + "}:", rest, true
}

// asynqCompanion knows all that asynq keeps but its locks.
func asynqCompanion(key string) (string, bool) {
	for _, prefix := range []string{"asynq:servers", "asynq:workers", "asynq:schedulers", "asynq:scheduler_history:"} {
		if strings.HasPrefix(key, prefix) {
			return "", true
		}
	}
	_, rest, ok := asynqQueue(key)
	return "", ok && !strings.HasPrefix(rest, "unique:") && rest != "lease"
}
