package statuspage

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// timer is a coordinator that counts how long its operations wait and run.
type timer interface {
	Times(within time.Duration) []core.Times
}

type timeFrame struct {
	Minutes int       `json:"minutes"`
	Times   []timeRow `json:"times"` // of coordinators, each before its lanes and classes
}

type timeRow struct {
	Coordinator string `json:"coordinator"`
	Error       string `json:"error,omitempty"` // error of a panic; then the other fields are missing
	*core.Times
}

// times shows how long operations waited and ran in the last minutes. The first call makes the coordinators count.
func (p *Page) times(minutes int) timeFrame {
	shown := timeFrame{minutes, []timeRow{}}
	for _, c := range p.coordinators {
		t, ok := c.is.(timer)
		if !ok {
			continue
		}
		var list []core.Times
		if err := p.guarded(func() { list = t.Times(time.Duration(minutes) * time.Minute) }); err != "" {
			shown.Times = append(shown.Times, timeRow{Coordinator: c.id, Error: err})
		}
		for _, of := range list {
			of.Lane, of.Class = cut(of.Lane), cut(of.Class)
			shown.Times = append(shown.Times, timeRow{c.id, "", &of})
		}
	}
	return shown
}
