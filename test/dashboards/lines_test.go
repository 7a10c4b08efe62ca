package dashboards_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// most lines and names in a panel.
const (
	maxLines = 10
	maxNames = 3
)

// lines draws a time series: lines, areas on each other, or bars.
func (a *artist) lines(p panel, at box) {
	d := p.FieldConfig.Defaults
	found := a.ask(p)
	slices.SortStableFunc(found, func(x, y line) int { return cmp.Compare(y.most(), x.most()) })
	if len(found) == 0 {
		a.fitted(at, faint, d.NoValue)
	}
	found = found[:min(len(found), maxLines)]
	bars, stacked := fmt.Sprint(d.Custom.DrawStyle) == "bars", fmt.Sprint(d.Custom.Stacking) == "map[group:A mode:normal]"
	if stacked {
		stack(found, a.steps())
	}
	top, ticks := highest(found), 3
	if d.Custom.AxisSoftMax > 0 {
		top = max(top, d.Custom.AxisSoftMax)
	}
	if d.Decimals != nil && *d.Decimals == 0 { // whole numbers at the axis
		if top = math.Ceil(top); top < 3 {
			ticks = int(top)
		} else {
			top = 3 * math.Ceil(top/3)
		}
	}
	names := min(len(found), maxNames)
	plot := at.inset(48, 4, 4, float64(names)*13+4)
	y := func(v float64) float64 { return plot.y + plot.h*(1-v/top) }
	x := func(step int) float64 { return plot.x + plot.w*float64(step)/float64(a.steps()) }
	for i := range ticks + 1 {
		v := top * float64(i) / float64(ticks)
		a.line(plot.x, y(v), plot.x+plot.w, y(v), grid, "")
		a.text(plot.x-5, y(v)+3, "e", faint, shown(v, d.Unit))
	}
	for i, l := range found {
		color := p.lineColor(l, i)
		switch {
		case bars:
			for step, v := range l.at {
				below := 0.0
				if i+1 < len(found) {
					below = found[i+1].at[step]
				}
				if v > below {
					a.rect(box{x(step) - 2, y(v), 3, y(below) - y(v)}, color, 0.7)
				}
			}
		default:
			for _, run := range runs(l, a.steps()) {
				var points [][2]float64
				for _, step := range run {
					points = append(points, [2]float64{x(step), y(l.at[step])})
				}
				if stacked {
					area := append(slices.Clone(points), [2]float64{x(run[len(run)-1]), y(0)}, [2]float64{x(run[0]), y(0)})
					a.path(area, "", color)
				}
				a.path(points, color, "none")
			}
		}
	}
	for _, s := range d.Thresholds.Steps[min(1, len(d.Thresholds.Steps)):] {
		if s.Value != nil && *s.Value < top {
			a.line(plot.x, y(*s.Value), plot.x+plot.w, y(*s.Value), cmp.Or(colors[s.Color], s.Color), "4 3")
		}
	}
	a.legend(p, found[:names], len(found), box{at.x, at.y + at.h - float64(names)*13, at.w, float64(names) * 13})
}

func (a *artist) legend(p panel, found []line, all int, at box) {
	for i, l := range found {
		y := at.y + float64(i)*13 + 9
		a.rect(box{at.x + 4, y - 5, 10, 3}, p.lineColor(l, i), 1)
		name := cmp.Or(l.name, p.Title)
		if i == maxNames-1 && all > maxNames {
			name += fmt.Sprintf("   (and %d more)", all-maxNames)
		}
		a.text(at.x+18, y, "s", ink, fit(name, at.w-90, 5.6))
		a.text(at.x+at.w-2, y, "e", faint, shown(l.last, p.FieldConfig.Defaults.Unit))
	}
}

// lineColor is the fixed colour of a series by its name, else the next of the palette.
func (p panel) lineColor(l line, i int) string {
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			var color struct{ FixedColor string }
			if o.Matcher.Options == l.name && property.ID == "color" && json.Unmarshal(property.Value, &color) == nil {
				return cmp.Or(colors[color.FixedColor], color.FixedColor)
			}
		}
	}
	return palette[i%len(palette)]
}

// most is the largest value of a line.
func (l line) most() float64 {
	most := math.Inf(-1)
	for _, v := range l.at {
		most = max(most, v)
	}
	return most
}

// stack puts each line on those that come after it; last stays its own.
func stack(found []line, steps int) {
	for i := len(found) - 2; i >= 0; i-- {
		for step := range steps + 1 {
			below, under := found[i+1].at[step]
			if _, here := found[i].at[step]; here || under {
				found[i].at[step] += below
			}
		}
	}
}

// highest is a round number that no point is above.
func highest(found []line) float64 {
	top := 0.0
	for _, l := range found {
		for _, v := range l.at {
			top = max(top, v)
		}
	}
	if top <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(top)))
	for _, m := range []float64{1, 1.5, 2, 3, 5, 7.5, 10} {
		if top <= m*unit {
			return m * unit
		}
	}
	return top
}

// runs are the steps of a line without gaps.
func runs(l line, steps int) [][]int {
	var out [][]int
	var run []int
	for step := range steps + 1 {
		if _, ok := l.at[step]; ok {
			run = append(run, step)
		} else if run != nil {
			out, run = append(out, run), nil
		}
	}
	if run != nil {
		out = append(out, run)
	}
	return out
}
