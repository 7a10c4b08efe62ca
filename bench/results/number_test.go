package results

import "testing"

func TestNumber(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0.00", 1.234: "1.23", 12.34: "12.3", 999.6: "1,000", 1234567: "1,234,567", -0.5: "-0.50"} {
		if got := Number(x); got != want {
			t.Errorf("Number(%g) is %q, want %q", x, got, want)
		}
	}
}
