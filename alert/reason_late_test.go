package alert

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A receiver that says nothing is notified of with the bound that it went past; one whose
// sender went away first is not.
func TestTimeoutsNameTheirBound(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client went
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		timeout, outer time.Duration
		want           string
	}{
		{"its own", 100 * time.Millisecond, time.Minute, "no answer within 100ms"},
		{"the caller's", time.Minute, 100 * time.Millisecond, "context deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := newPoster(u, Endpoint{AllowPrivate: true, Timeout: c.timeout}, &files{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.close)
			ctx, cancel := context.WithTimeout(t.Context(), c.outer)
			defer cancel()
			_, err = p.post(ctx, []byte("{}"), nil)
			e, ok := errors.AsType[*DeliveryError](err)
			if !ok || e.Reason != ReasonTimeout || !e.Retryable || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.want+"; ") {
				t.Errorf("got %v, %+v", err, e)
			}
		})
	}
}
