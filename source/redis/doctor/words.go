package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// round shows a time to the precision that a person reads.
func round(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(100 * time.Millisecond).String()
	}
}

func size(bytes int64) string {
	switch {
	case bytes < 0:
		return "?"
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
}

func percent(part float64) string { return fmt.Sprintf("%.3g%%", 100*part) }

func orDefault(user string) string {
	if user == "" {
		return "default"
	}
	return locksteward.DisplayKey(user)
}

// oneLine makes text from elsewhere fit for one line.
func oneLine(text string) string {
	return locksteward.DisplayKey(strings.Join(strings.Fields(text), " "))
}
