package console

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// notModified gives the answer to a GET its tag, a digest of its bytes, and says
// whether the client has them already; then it has answered. Who asks was found
// out before, so that a tag opens nothing.
func notModified(w http.ResponseWriter, raw []byte) bool {
	rec := recorderOf(w)
	if rec == nil || rec.request.Method != http.MethodGet && rec.request.Method != http.MethodHead {
		return false
	}
	sum := sha256.Sum256(raw)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	w.Header().Set("ETag", tag)
	if !hasTag(rec.request.Header.Values("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// hasTag compares weakly, as If-None-Match does (RFC 9110, 13.1.2).
func hasTag(lines []string, tag string) bool {
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// recorderOf finds the writer that knows the request.
func recorderOf(w http.ResponseWriter) *recorder {
	for {
		switch v := w.(type) {
		case *recorder:
			return v
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return nil
		}
	}
}
