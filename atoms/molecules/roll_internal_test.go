package molecules

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/core"
)

var errWhy = errors.New("on purpose")

// What happens between the moment in which a run has its id and that in which it is
// listed: somebody tells how it ends, and only one does.
func TestRollWhileARunEnters(t *testing.T) {
	const id = 7
	for name, c := range map[string]struct {
		meanwhile func(l *roll, r *Run)
		begins    bool  // the run may go on
		cancelled error // who lists it has to tell
		claimed   bool  // who cancels it later has to
	}{
		"nothing":              {func(*roll, *Run) {}, true, nil, true},
		"it is cancelled":      {func(l *roll, _ *Run) { l.claim(id, errWhy) }, false, errWhy, false},
		"another is":           {func(l *roll, _ *Run) { l.claim(id+1, errWhy) }, true, nil, true},
		"all are":              {func(l *roll, _ *Run) { l.claimAll() }, false, core.ErrClosed, false},
		"it begins":            {func(l *roll, r *Run) { l.begin(r, id) }, false, nil, false},
		"it begins after that": {func(l *roll, r *Run) { l.claim(id, errWhy); l.begin(r, id) }, false, nil, false},
		"it begins and ends":   {func(l *roll, r *Run) { l.begin(r, id); l.leave(r) }, false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Blueprint{Steps: []Step{{Await: "x"}}}
			for _, next := range []string{"begin", "claim", "claimAll"} {
				l := newRoll(true)
				r := &Run{blueprint: b, news: make(chan struct{}, 1)}
				first, cancelled, err := l.enter(r, func() (core.OperationID, error) {
					c.meanwhile(l, r)
					assert.False(t, l.empty())
					return id, nil
				})
				assert.NoError(t, err)
				assert.True(t, first)
				assert.Equal(t, c.cancelled, cancelled)
				assert.Nil(t, l.missed)
				switch next {
				case "begin":
					assert.Equal(t, c.begins, l.begin(r, id))
				case "claim":
					_, ok := l.claim(id, errWhy)
					assert.Equal(t, c.claimed, ok)
				case "claimAll":
					assert.Equal(t, c.claimed, len(l.claimAll()) == 1)
				}
				if name != "it begins and ends" {
					assert.Len(t, l.runs, 1)
					l.leave(r)
				}
				assert.Empty(t, l.runs)
				assert.Empty(t, l.groups)
				assert.False(t, l.empty())
				l.close()
				assert.True(t, l.empty())
			}
		})
	}

	l := newRoll(false)
	_, _, err := l.enter(&Run{blueprint: &Blueprint{}}, func() (core.OperationID, error) { return 0, core.ErrFull })
	assert.Equal(t, core.ErrFull, err)
	assert.Empty(t, l.runs)
}
