package testagent

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// Sample is one line of what an agent says of itself.
type Sample struct {
	Series string // name{label="value",...}
	Name   string
	Value  float64
}

var scraper = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Scrape asks for the metrics at host:port, as long as ctx lets it.
func Scrape(ctx context.Context, addr string) ([]Sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := scraper.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	var out []Sample
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(line[:i], "{")
		out = append(out, Sample{Series: line[:i], Name: name, Value: v})
	}
	return out, lines.Err()
}
