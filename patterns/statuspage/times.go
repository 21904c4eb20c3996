package statuspage

import (
	"context"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

type timeRow struct {
	Coordinator string `json:"coordinator"`
	Error       string `json:"error,omitempty"` // error of a panic; then the other fields are missing
	*core.Times
}

// times shows how long operations waited and ran in the last minutes. The first call makes the coordinators count, until
// there are MaxTimes.
func (p *Page) times(minutes int) source {
	return func(context.Context, effort) (any, error) {
		rows, left, missing := []timeRow{}, p.opts.MaxTimes, 0
		for _, c := range p.coordinators {
			t, ok := c.is.(interface {
				Times(time.Duration) []core.Times
			})
			if ok && left <= 0 {
				missing++
			}
			if !ok || left <= 0 {
				continue
			}
			var list []core.Times
			if err := p.guarded(func() { list = t.Times(time.Duration(minutes) * time.Minute) }); err != "" {
				rows = append(rows, timeRow{Coordinator: c.id, Error: err})
			}
			for _, of := range list { // of the coordinator, its lanes and its classes
				of.Lane, of.Class = cut(of.Lane), cut(of.Class)
				rows = append(rows, timeRow{c.id, "", &of})
			}
			left -= max(1, len(list)-1)
		}
		return object{"minutes": minutes, "times": rows, "missing": missing}, nil
	}
}
