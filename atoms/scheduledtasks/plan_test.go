package scheduledtasks

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func newPlan(t testing.TB, run int, jitter time.Duration, now time.Time, definitions ...Definition) *plan {
	t.Helper()
	entries, err := compile("", definitions, Options{Missed: run, Jitter: jitter}, true)
	require.NoError(t, err)
	p := &plan{entries: map[string]*entry{}}
	for _, e := range entries {
		p.put(nil, e, now)
	}
	p.requeue()
	return p
}

func job(name, cron string) Definition { return Definition{Name: name, Cron: cron, Signal: "job.due"} }

// The plan is compared with a list of all ticks, on a clock that jumps forward and back.
// Each tick up to the latest time is run or missed, exactly once and in order.
func TestPlanOnAClockThatJumps(t *testing.T) {
	rounds := 8
	if long() {
		rounds = 2000
	}
	crons := []string{"* * * * * *", "*/7 * * * * *", "*/5 * * * *", "@every 90s", "0 * * * *", "30 2 * * *"}
	for seed := range rounds {
		rnd := rand.New(rand.NewPCG(uint64(seed), 2))
		run := rnd.IntN(4)
		var definitions []Definition
		for i := range 4 {
			d := job(fmt.Sprint("s", i), crons[rnd.IntN(len(crons))])
			d.TimeZone = "Europe/Berlin"
			definitions = append(definitions, d)
		}
		now := time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC) // the clock changes soon
		p := newPlan(t, run, time.Duration(rnd.IntN(2))*40*time.Second, now, definitions...)
		unseen := map[string]time.Time{} // all ticks up to this one are run or missed
		busy := map[string][]*firing{}
		for name := range p.entries {
			unseen[name] = now
		}
		for range 200 {
			step := []time.Duration{time.Millisecond, time.Second, 30 * time.Second, 10 * time.Minute, time.Hour}[rnd.IntN(5)]
			if now = now.Add(time.Duration(rnd.Int64N(int64(step)))); rnd.IntN(10) == 0 {
				now = now.Add(-time.Duration(rnd.Int64N(int64(3 * time.Hour))))
			}
			got, gotLate := map[string][]time.Time{}, map[string]MissedTicks{}
			due, late := p.step(now)
			for _, f := range due {
				got[f.task.Name] = append(got[f.task.Name], f.task.ScheduledAt)
			}
			for _, m := range late {
				gotLate[m.Name] = m
			}
			for name, e := range p.entries {
				var want []time.Time
				for at := e.spec.next(unseen[name]); len(busy[name]) == 0 && !at.After(now.Add(-e.offset)); at = e.spec.next(at) {
					want = append(want, at)
				}
				n, inTime := len(want), 0
				if n == 0 {
					require.Empty(t, got[name])
					continue
				}
				unseen[name] = want[n-1]
				if now.Add(-e.offset).Sub(want[n-1]) <= onTime {
					inTime = 1
				}
				k := min(n, max(run, inTime))
				require.Equal(t, want[n-k:], append([]time.Time{}, got[name]...), "seed %d", seed)
				if n > inTime {
					require.Equal(t, MissedTicks{name, want[0], min(n, maxCounted) - inTime, k - inTime, gotLate[name].Reason}, gotLate[name])
				}
			}
			for _, f := range due {
				busy[f.task.Name] = append(busy[f.task.Name], f)
			}
			for name, all := range busy {
				for _, f := range all {
					if rnd.IntN(3) > 0 {
						p.done(f, true, now)
						busy[name] = busy[name][1:]
					}
				}
			}
		}
	}
}

func TestOfManyMissedTicksTheNewestRunAndTheCountIsBounded(t *testing.T) {
	p := newPlan(t, 2, 0, monday, job("second", "* * * * * *"))
	later := monday.AddDate(3, 0, 0)
	begun := time.Now()
	due, late := p.step(later)
	require.Len(t, due, 2)
	assert.Equal(t, later.Add(-time.Second), due[0].task.ScheduledAt)
	assert.Equal(t, later, due[1].task.ScheduledAt)
	assert.Equal(t, []MissedTicks{{"second", monday.Add(time.Second), maxCounted - 1, 1, "the first of them was noticed 26303h59m59s late"}}, late)
	assert.Less(t, time.Since(begun), 5*time.Second)
}

func TestRunOnStartup(t *testing.T) {
	daily := job("daily", "0 9 * * *")
	daily.RunOnStartup = true
	for name, c := range map[string]struct {
		remembered time.Time
		missed     int
		want       []time.Time
	}{
		"first start":            {want: []time.Time{monday.Add(-15 * time.Hour)}},
		"restart, it has run":    {remembered: monday.Add(-15 * time.Hour)},
		"restart, it has missed": {remembered: monday.Add(-63 * time.Hour), want: []time.Time{monday.Add(-15 * time.Hour)}},
		"restart, and all missed ticks are run": {
			remembered: monday.Add(-63 * time.Hour), missed: 9, want: []time.Time{monday.Add(-39 * time.Hour), monday.Add(-15 * time.Hour)},
		},
	} {
		entries, err := compile("", []Definition{daily}, Options{Missed: c.missed}, true)
		require.NoError(t, err)
		p := plan{entries: map[string]*entry{}}
		entries[0].seen = c.remembered
		p.put(nil, entries[0], monday)
		p.requeue()
		due, _ := p.step(monday)
		var got []time.Time
		for _, f := range due {
			got = append(got, f.task.ScheduledAt)
			p.done(f, true, monday)
		}
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, monday.Add(9*time.Hour), entries[0].next, name)
	}
}

func TestJitterShiftsAScheduleAlwaysByTheSame(t *testing.T) {
	var offsets [2]time.Duration
	for i, name := range []string{"a", "b"} {
		p := newPlan(t, 0, time.Hour, monday, job(name, "@hourly"))
		offsets[i] = p.entries[name].offset
		for hour := 1; hour < 4; hour++ {
			tick := monday.Add(time.Duration(hour) * time.Hour)
			early, _ := p.step(tick.Add(offsets[i] - 1))
			assert.Empty(t, early)
			due, late := p.step(tick.Add(offsets[i]))
			require.Len(t, due, 1)
			assert.Equal(t, tick, due[0].task.ScheduledAt)
			assert.Empty(t, late)
			p.done(due[0], true, tick)
		}
	}
	assert.NotEqual(t, offsets[0], offsets[1])
}

// A hundred thousand firings of a thousand schedules.
func TestSimulation(t *testing.T) {
	var definitions []Definition
	for i := range 1000 {
		d := job(fmt.Sprint("s", i), fmt.Sprintf("%d */%d * * * *", i%60, 1+i%7))
		d.TimeZone = twentyZones[i%20]
		definitions = append(definitions, d)
	}
	p := newPlan(t, 0, 0, monday, definitions...)
	begun, fired := time.Now(), 0
	for now := monday; fired < 100_000; now = now.Add(time.Second) {
		due, late := p.step(now)
		require.Empty(t, late)
		for _, f := range due {
			require.Equal(t, now, f.task.ScheduledAt)
			p.done(f, true, now)
			fired++
		}
	}
	if !coretest.Race && strconv.IntSize == 64 { // times are slower with 32 bits
		assert.Less(t, time.Since(begun), 5*time.Second)
	}
}
