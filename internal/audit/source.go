package audit

import (
	"context"
	"errors"
	"io"
)

// CheckSource verifies a trail entry by entry on this side, from wherever it comes:
// what an agent says of itself is not believed.
func CheckSource(ctx context.Context, from Source, o CheckOptions) (Checked, error) {
	r, w := io.Pipe()
	exported := make(chan error, 1)
	go func() {
		_, err := Export(ctx, from, w, ExportOptions{})
		_ = w.CloseWithError(err)
		exported <- err
	}()
	found, err := CheckExport(r, o)
	_ = r.CloseWithError(err) // so that nobody writes for nobody
	if source := <-exported; source != nil && !errors.Is(source, io.ErrClosedPipe) && (err == nil || errors.Is(err, source)) {
		return found, source // in its own words, without a line of a file that there is not
	}
	return found, err
}
