package dashboards_test

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// canvas draws SVG. Numbers have one digit behind the point: it is a picture of
// pixels.
type canvas struct{ b strings.Builder }

func n(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

func (c *canvas) rect(b box, fill string, opacity float64) {
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"`, n(b.x), n(b.y), n(max(b.w, 0.1)), n(max(b.h, 0.1)), fill)
	if opacity < 1 {
		fmt.Fprintf(&c.b, ` fill-opacity="%s"`, n(opacity))
	}
	c.b.WriteString("/>\n")
}

func (c *canvas) line(x1, y1, x2, y2 float64, color, dash string) {
	fmt.Fprintf(&c.b, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"`, n(x1), n(y1), n(x2), n(y2), color)
	if dash != "" {
		fmt.Fprintf(&c.b, ` stroke-dasharray="%s"`, dash)
	}
	c.b.WriteString("/>\n")
}

// path draws a line through points, or fills what is between two of them.
func (c *canvas) path(points [][2]float64, stroke, fill string) {
	if len(points) == 0 {
		return
	}
	c.b.WriteString(`<path d="`)
	for i, p := range points {
		c.b.WriteString(map[bool]string{true: "M", false: "L"}[i == 0] + n(p[0]) + " " + n(p[1]))
	}
	if fill != "none" {
		fmt.Fprintf(&c.b, `Z" fill="%s" fill-opacity="0.3"/>`+"\n", fill)
		return
	}
	fmt.Fprintf(&c.b, `" stroke="%s" fill="none" stroke-width="1.2"/>`+"\n", stroke)
}

func (c *canvas) text(x, y float64, class, color, text string) {
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" class="%s" fill="%s">%s</text>`+"\n", n(x), n(y), class, color, html.EscapeString(text))
}

// page wraps what was drawn.
func (c *canvas) page(w, h float64) []byte {
	const style = `text{font-family:Inter,Helvetica,Arial,sans-serif}.t{font-size:12px;font-weight:600}.r{font-size:14px;font-weight:600}` +
		`.s{font-size:10px}.e{font-size:10px;text-anchor:end}.m{font-size:12px;font-weight:600;text-anchor:middle}.b{font-size:26px;font-weight:600;text-anchor:middle}.h{font-size:18px;font-weight:600}`
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s">`+"\n<style>%s</style>\n%s</svg>\n",
		n(w), n(h), n(w), n(h), style, c.b.String())
}

// box is a place on the canvas.
type box struct{ x, y, w, h float64 }

func (b box) inset(left, top, right, bottom float64) box {
	return box{b.x + left, b.y + top, b.w - left - right, b.h - top - bottom}
}

// Colors by the names that dashboards use.
var colors = map[string]string{"text": ink, "green": "#73bf69", "red": "#f2495c", "orange": "#ff9830", "blue": "#5794f2"}

// palette is for lines.
var palette = []string{"#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#96d98d", "#ffee52", "#c0d8ff"}

const (
	ground = "#111217"
	paper  = "#181b1f"
	ink    = "#ccccdc"
	faint  = "#7b8087"
	grid   = "#2c3235"
)

// shown writes a value with its unit as a person reads it.
func shown(v float64, unit string) string {
	if math.IsNaN(v) {
		return "none"
	}
	scaled := func(v float64, step float64, units ...string) string {
		i := 0
		for math.Abs(v) >= step && i < len(units)-1 {
			v, i = v/step, i+1
		}
		return short(v) + units[i]
	}
	switch unit {
	case "s":
		switch a := math.Abs(v); {
		case a == 0:
			return "0 s"
		case a < 1:
			return short(v*1000) + " ms"
		case a < 60:
			return short(v) + " s"
		case a < 3600:
			return short(v/60) + " min"
		default:
			return short(v/3600) + " h"
		}
	case "bytes":
		return scaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB")
	case "percentunit":
		return short(v*100) + "%"
	case "ops":
		return scaled(v, 1000, "/s", " K/s", " M/s")
	default:
		return scaled(v, 1000, "", " K", " M", " G")
	}
}

// short has three digits that count.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || a == math.Trunc(a):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	default:
		return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
	}
}

// fit cuts text to a width, for letters of about that many pixels.
func fit(text string, width, letter float64) string {
	most := int(width / letter)
	if r := []rune(text); len(r) > most {
		return string(r[:max(most-1, 0)]) + "…"
	}
	return text
}
