package demo

import (
	"fmt"
	"io"
	"sync"
)

// textWidth is how wide running text is set.
const textWidth = 96

// printer writes lines one below the other. It keeps the first error and writes
// no more after it. It is safe for concurrent use.
type printer struct {
	w      io.Writer
	colour bool
	failed func(error) // called with the first error

	mu  sync.Mutex
	err error
}

func (p *printer) print(l line) { p.write(l.render(0, p.colour) + "\n") }

func (p *printer) lines(lines ...line) {
	for _, l := range lines {
		p.print(l)
	}
}

// head begins a section.
func (p *printer) head(title string) { p.lines(nil, styled(bold, title)) }

// paragraph prints text, wrapped and indented by n.
func (p *printer) paragraph(n int, s style, text string) {
	for _, l := range wrap(text, textWidth-n) {
		p.print(line{{text: pad("", n)}, {text: l, style: s}})
	}
}

func (p *printer) write(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	if _, err := io.WriteString(p.w, s); err != nil {
		p.err = fmt.Errorf("write output: %w", err)
		p.failed(p.err)
	}
}
