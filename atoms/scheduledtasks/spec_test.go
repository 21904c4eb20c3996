package scheduledtasks

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func long() bool { return os.Getenv("EPHEMERAL_LONG") != "" }

func mustParse(t testing.TB, text, zone string) *spec {
	t.Helper()
	s, err := parseSpec(text, "", zone)
	require.NoError(t, err)
	return s
}

// ticks lists the first n ticks of a schedule after a time, in its zone.
func ticks(t testing.TB, text, zone, after string, n int) (all []string) {
	t.Helper()
	s := mustParse(t, text, zone)
	at, err := time.ParseInLocation("2006-01-02 15:04:05", after, s.zone)
	require.NoError(t, err)
	for range n {
		at = s.next(at)
		all = append(all, at.In(s.zone).Format("2006-01-02 15:04:05 -0700"))
	}
	return all
}

func TestTextsThatMeanTheSame(t *testing.T) {
	for text, same := range map[string]string{
		"0 9 * * 7":          "0 9 * * SUN",
		"0 9 * * 5-7":        "0 9 * * sun,fri,Sat",
		"0 9 * * 1-7/3":      "0 9 * * 1,4,0",
		"0 9 * * 2-7/2":      "0 9 * * 2,4,6",
		"0 9 * * fri-7":      "0 9 * * 0,5,6",
		"0 9 * * 0-7":        "0 9 * * ?",
		"0 9 * * 7-7":        "0 9 * * 0",
		"@every_second":      "* * * * * *",
		"@every_minute":      "* * * * *",
		"@hourly":            "0 0 * * * *",
		"@Daily":             "0 0 * * *",
		"@midnight":          "0 0 0 * * *",
		"@weekly":            "0 0 * * 0",
		"@monthly":           "0 0 1 * *",
		"@yearly":            "0 0 1 JAN *",
		"@annually":          "0 0 1 1 *",
		"  0\t9  * *   1-5 ": "0 9 * * MON-FRI",
		"5/20 * * * *":       "5,25,45 * * * *",
	} {
		assert.Equal(t, ticks(t, same, "", "2026-01-01 00:00:00", 50), ticks(t, text, "", "2026-01-01 00:00:00", 50), text)
	}
}

func TestNextTicks(t *testing.T) {
	for _, c := range []struct{ name, text, zone, after, want string }{
		{"strictly after", "0 9 * * *", "", "2026-03-01 09:00:00", "2026-03-02 09:00:00 +0000"},
		{"seconds", "30 59 23 31 12 *", "", "2026-12-31 23:59:30", "2027-12-31 23:59:30 +0000"},
		{"either the day or the weekday", "0 0 13 * FRI", "", "2026-03-10 00:00:00", "2026-03-13 00:00:00 +0000, 2026-03-20 00:00:00 +0000"},
		{"both if one begins with a star", "0 0 */2 * MON", "", "2026-03-01 00:00:00", "2026-03-09 00:00:00 +0000, 2026-03-23 00:00:00 +0000"},
		{"the last day of a leap year", "0 0 29 2 */7", "Europe/Berlin", "2088-02-28 00:00:00", "2088-02-29 00:00:00 +0100, 2128-02-29 00:00:00 +0100"},
		{"29 February on a Sunday", "0 0 29 2 */7", "", "2088-02-29 00:00:00", "2128-02-29 00:00:00 +0000"},
		{"every, aligned to the clock", "@every 1h30m", "", "2026-03-01 00:10:00", "2026-03-01 01:30:00 +0000, 2026-03-01 03:00:00 +0000"},
		{"every day", "@every 24h", "Asia/Tokyo", "2026-03-01 00:00:00", "2026-03-01 09:00:00 +0900"},
		{"fixed, in the gap", "15,30 2 * * *", "Europe/Berlin", "2026-03-28 23:00:00", "2026-03-29 03:00:00 +0200, 2026-03-30 02:15:00 +0200"},
		{"fixed, gap of a whole day", "0 12 * * *", "Pacific/Apia", "2011-12-29 12:00:00", "2011-12-31 00:00:00 +1400, 2011-12-31 12:00:00 +1400"},
		{"fixed, midnight is skipped", "0 0 * * *", "Asia/Beirut", "2026-03-28 12:00:00", "2026-03-29 01:00:00 +0300, 2026-03-30 00:00:00 +0300"},
		{"fixed, in the repeated hour", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00:00", "2026-10-25 02:30:00 +0200, 2026-10-26 02:30:00 +0100"},
		{"steps, in the gap", "*/30 * * * *", "Europe/Berlin", "2026-03-29 01:00:00", "2026-03-29 01:30:00 +0100, 2026-03-29 03:00:00 +0200"},
		{"star, in both passes", "30 * * * *", "Europe/Berlin", "2026-10-25 01:30:00", "2026-10-25 02:30:00 +0200, 2026-10-25 02:30:00 +0100, 2026-10-25 03:30:00 +0100"},
		{"range, in both passes", "0 1-2 * * *", "Europe/Berlin", "2026-10-25 00:00:00", "2026-10-25 01:00:00 +0200, 2026-10-25 02:00:00 +0200, 2026-10-25 02:00:00 +0100"},
		{"half an hour, gap", "10 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00:00", "2026-10-04 02:30:00 +1100, 2026-10-05 02:10:00 +1100"},
		{"half an hour, repeated", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00:00", "2026-04-05 01:45:00 +1100, 2026-04-06 01:45:00 +1030"},
	} {
		assert.Equal(t, c.want, strings.Join(ticks(t, c.text, c.zone, c.after, 1+strings.Count(c.want, ",")), ", "), c.name)
	}
}

// Faults avoided: a definition without a date never ran, without an error; wrong formats and
// zones had another kind of error.
func TestTextsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ text, format, zone, want string }{
		{"every day", "", "", `"cron": expected 5 or 6 fields, got "every day"`},
		{"", "", "", `"cron": expected 5 or 6 fields, got ""`},
		{"* * * * * *", "Standard", "", `"cron": expected 5 fields, got "* * * * * *"`},
		{"* * * * *", "includeSeconds", "", `"cron": expected 6 fields, got "* * * * *"`},
		{"* * * * *", "Quartz", "", `"format": expected Standard or IncludeSeconds, got "Quartz"`},
		{"* * * * *", "", "Mars/Olympus", `"timeZone": unknown time zone Mars/Olympus`},
		{"* * * * *", "", "../etc/passwd", `"timeZone": time: invalid location name`},
		{"TZ=UTC", "", "", `"cron": expected 5 or 6 fields, got "TZ=UTC"`},
		{"CRON_TZ=UTC * * * *", "", "", `"cron": expected 5 or 6 fields, got "CRON_TZ=UTC * * * *"`},
		{"0 0 30 2 *", "", "", `"cron": there is no such date, got "0 0 30 2 *"`},
		{"0 0 15W * *", "", "", `"cron": "15w" is not supported: write numbers, names, ranges, steps or *, and not L, W or #`},
		{"0 0 * * 6#2", "", "", `"cron": "6#2" is not supported: write numbers, names, ranges, steps or *, and not L, W or #`},
		{"0 22-1 * * *", "", "", `"cron": beginning of range (22) beyond end of range (1): 22-1, got "0 22-1 * * *"`},
		{"60 * * * *", "", "", `"cron": end of range (60) above maximum (59): 60, got "60 * * * *"`},
		{"0 0 * * 8", "", "", `"cron": days of the week are from 0 to 7, got "0 0 * * 8"`},
		{"*/0 * * * *", "", "", `"cron": step of range should be a positive number: */0, got "*/0 * * * *"`},
		{", * * * *", "", "", `"cron": "," is not supported: write numbers, names, ranges, steps or *, and not L, W or #`},
		{"*-5 * * * *", "", "", `"cron": "*-5" is not supported: write numbers, names, ranges, steps or *, and not L, W or #`},
		{"@never", "", "", `"cron": expected 5 or 6 fields, got "@never"`},
		{"@every 500ms", "", "", `"cron": expected whole seconds, such as @every 1h30m, got "@every 500ms"`},
		{"@every 1500ms", "", "", `"cron": expected whole seconds, such as @every 1h30m, got "@every 1500ms"`},
		{"0 0 1" + strings.Repeat(",1", 1000) + " * *", "", "", `"cron": expected 5 or 6 fields, got "0 0 1` + strings.Repeat(",1", 47) + `"`},
	} {
		_, err := parseSpec(c.text, c.format, c.zone)
		assert.EqualError(t, err, c.want)
	}
}

// twentyZones change their clocks in every way that is known: by an hour, half an hour, two
// hours and a day, at midnight, in winter, and not at all.
var twentyZones = []string{
	"Europe/Berlin", "Europe/Dublin", "Europe/Moscow", "Atlantic/Azores", "America/New_York", "America/St_Johns", "America/Havana",
	"America/Sao_Paulo", "America/Santiago", "America/Asuncion", "America/Caracas", "Asia/Beirut", "Asia/Gaza", "Asia/Tehran",
	"Asia/Kolkata", "Asia/Pyongyang", "Africa/Casablanca", "Africa/Cairo", "Antarctica/Troll", "Australia/Lord_Howe",
	"Australia/Sydney", "Pacific/Apia", "Pacific/Norfolk",
}

// modelField is a random field as text, with the numbers that it allows. The numbers in it
// are at most upTo.
func modelField(rnd *rand.Rand, least, most, upTo int) (text string, allows map[int]bool) {
	low := least + rnd.IntN(upTo-least+1)
	high, step := low+rnd.IntN(upTo-low+1), 1+rnd.IntN(upTo-least)
	switch rnd.IntN(6) {
	case 0:
		text, low, high, step = "*", least, most, 1
	case 1:
		text, low, high = fmt.Sprintf("*/%d", step), least, most
	case 2:
		text, step = fmt.Sprintf("%d-%d", low, high), 1
	case 3:
		text = fmt.Sprintf("%d-%d/%d", low, high, step)
	case 4:
		text, high = fmt.Sprint(low), low
	default:
		step = max(1, high-low)
		text = fmt.Sprintf("%d,%d", low, low+(high-low)/step*step)
	}
	allows = map[int]bool{}
	for n := low; n <= high; n += step {
		allows[n] = true
	}
	return text, allows
}

// A model of the rules looks at every minute around the changes of a clock.
func TestTicksAroundChangesOfTheClock(t *testing.T) {
	rounds := 12
	if long() {
		rounds = 100
	}
	for _, name := range twentyZones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(name)
			require.NoError(t, err)
			rnd := rand.New(rand.NewPCG(1, uint64(len(name))))
			var changes []time.Time
			for _, at := zone2005(zone).ZoneBounds(); !at.IsZero() && at.Year() < 2031; _, at = at.ZoneBounds() {
				changes = append(changes, at)
			}
			changes = append(changes, zone2005(zone)) // for zones without changes
			for round := range rounds {
				minute, minutes := modelField(rnd, 0, 59, 59)
				hour, hours := modelField(rnd, 0, 23, 4)
				day, days := modelField(rnd, 1, 31, 31)
				weekday, weekdays := modelField(rnd, 0, 6, 6)
				if rnd.IntN(3) > 0 {
					day, weekday = "*", "*"
				}
				text := fmt.Sprintf("%s %s %s * %s", minute, hour, day, weekday)
				s := mustParse(t, text, name)
				fixed := !strings.ContainsAny(minute+hour, "*-/")
				matches := func(wall int64) bool {
					w := time.Unix(wall, 0).UTC()
					inDay, inWeek := day == "*" || days[w.Day()], weekday == "*" || weekdays[int(w.Weekday())]
					onDay := inDay && inWeek
					if day[0] != '*' && weekday[0] != '*' {
						onDay = inDay || inWeek
					}
					return minutes[w.Minute()] && hours[w.Hour()] && onDay
				}
				begin := changes[(round*7+rnd.IntN(3))%len(changes)].Add(-40 * time.Hour).Truncate(time.Minute)
				end := begin.Add(80 * time.Hour)
				var want, got []string
				last, shown := wallOf(begin.Add(-time.Minute)), int64(0)
				for at := begin; at.Before(end); at = at.Add(time.Minute) {
					wall := wallOf(at)
					due := matches(wall) && (!fixed || wall > shown)
					for skipped := last + 60; fixed && skipped < wall; skipped += 60 {
						due = due || matches(skipped)
					}
					if last, shown = wall, max(shown, wall); due {
						want = append(want, at.In(zone).String())
					}
				}
				for at := s.next(begin.Add(-time.Second)); at.Before(end) && !at.IsZero(); at = s.next(at) {
					got = append(got, at.In(zone).String())
				}
				require.Equal(t, want, got, text)
				if n := len(got); n > 0 { // the search backwards finds the same ticks
					assert.Equal(t, got[n-1], s.newest(begin.Add(-time.Second), end.Add(-time.Second)).In(zone).String(), text)
				}
			}
		})
	}
}

func zone2005(zone *time.Location) time.Time { return time.Date(2005, 1, 1, 0, 0, 0, 0, zone) }

func wallOf(t time.Time) int64 {
	_, offset := t.Zone()
	return t.Unix() + int64(offset)
}

// Any text is refused or has ascending ticks, in bounded time.
func FuzzCron(f *testing.F) {
	for _, text := range []string{
		"*/5 * * * *", "TZ=", "TZ=UTC", "CRON_TZ=a b", "@every 1h", "@every 9999999h", "@", "0 0 29 2 */7", "0 0 30 2 *", "5-7/3 * * * * 7",
		"0 0 * * 1-7/18446744073709551615", "0/9223372036854775807 * * * *", "*/0 * * * *", "- - - - -", ",,,,", "? ? ? ? ?", "0 0 31 * MON#5", "é * * * *",
	} {
		f.Add(text, "", "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, text, format, zone string) {
		begun := time.Now()
		s, err := parseSpec(text, format, zone)
		if err != nil {
			return
		}
		at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
		var all []time.Time
		for range 10 {
			at = s.next(at)
			all = append(all, at)
		}
		require.True(t, slices.IsSortedFunc(all, time.Time.Compare), "%v", all)
		require.Len(t, slices.Compact(all), 10)
		require.Equal(t, all[0], s.newest(all[0].Add(-time.Second), all[0]))
		require.Less(t, time.Since(begun), 5*time.Second, text)
	})
}

const allFields = `[{"name": "report", "cron": "0 9 * * MON-FRI", "signal": "report.due", "key": "sales", "payload": {"file": "a.csv"},
	"description": "daily sales", "timeZone": "Europe/Berlin", "format": "standard", "runOnStartup": true,
	"missed": 3, "overlap": "skip", "jitter": "1m30s", "timeout": "-1s"},
	{"name": "tick", "cron": "@every_second", "signal": "tick", "key": null}]`

func TestAllFieldsOfJSON(t *testing.T) {
	got, err := Parse([]byte(allFields))
	require.NoError(t, err)
	assert.Equal(t, []Definition{{
		Name: "report", Cron: "0 9 * * MON-FRI", Signal: "report.due", Key: "sales", Payload: json.RawMessage(`{"file": "a.csv"}`),
		Description: "daily sales", TimeZone: "Europe/Berlin", Format: "standard", RunOnStartup: true,
		Missed: 3, Overlap: SkipOverlap, Jitter: 90 * time.Second, Timeout: -time.Second,
	}, {Name: "tick", Cron: "@every_second", Signal: "tick"}}, got)
}

// Faults avoided: unknown fields, and optional fields of the wrong type, were ignored.
func TestErrorsOfJSONNameEntryAndField(t *testing.T) {
	object := json.Unmarshal([]byte(`{}`), new([]json.RawMessage)) // versions of Go say it in other words
	for text, want := range map[string]string{
		``:      `expected a JSON array of objects: unexpected end of JSON input`,
		`null`:  `expected a JSON array of objects: <nil>`,
		`{}`:    `expected a JSON array of objects: ` + object.Error(),
		`[] []`: `expected a JSON array of objects: invalid character '[' after top-level value`,
		`[7]`:   `entry 1, "7": expected an object`,
		`[{"name": "a", "cron": "* * * * *", "signal": "s"}, {"Name": "b"}]`:                                     `entry 2, "Name": there is no such field, or it is given twice`,
		`[{"name": "a", "name": "b"}]`:                                                                           `entry 1, "name": there is no such field, or it is given twice`,
		`[{"name": "a", "runOnStartup": "true"}]`:                                                                `entry 1, "runOnStartup": expected a bool, got a string`,
		`[{"name": "a", "key": 7}]`:                                                                              `entry 1, "key": expected a string, got a number`,
		`[{"cron": "* * * * *", "signal": "s"}]`:                                                                 `entry 1, "name": expected 1 to 200 bytes without commas, wildcards, and blanks around them, got ""`,
		`[{"name": "a", "cron": "* * * * *", "signal": "job.*"}]`:                                                `entry 1, "signal": expected 1 to 200 bytes without commas, wildcards, and blanks around them, got "job.*"`,
		`[{"name": "a", "jitter": 5}]`:                                                                           `entry 1, "jitter": expected a text such as "30s", got "5"`,
		`[{"name": "a", "timeout": "soon"}]`:                                                                     `entry 1, "timeout": expected a text such as "30s", got "soon"`,
		`[{"name": "a", "cron": "* * * * *", "signal": "s", "missed": 1001}]`:                                    `entry 1, "missed": expected at most 1000, got 1001`,
		`[{"name": "a", "cron": "* * * * *", "signal": "s", "overlap": "queue"}]`:                                `entry 1, "overlap": expected "allow" or "skip", got "queue"`,
		`[{"name": "a", "signal": "s"}]`:                                                                         `entry 1, "cron": expected 5 or 6 fields, got ""`,
		`[{"name": "a", "cron": "every day", "signal": "s"}]`:                                                    `entry 1, "cron": expected 5 or 6 fields, got "every day"`,
		`[{"name": "a", "cron": "* * * * *", "signal": "s"}, {"name": "a", "cron": "* * * * *", "signal": "s"}]`: `entry 2, "name": "a" is the name of entry 1`,
		`[{"name": "` + strings.Repeat("a", 201) + `", "cron": "* * * * *", "signal": "s"}]`:                     `entry 1, "name": expected 1 to 200 bytes without commas, wildcards, and blanks around them, got "` + strings.Repeat("a", 99) + `"`,
	} {
		_, err := Parse([]byte(text))
		assert.EqualError(t, err, "scheduledtasks: "+want)
	}
}

// An accepted definition can be written and read again, and means the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(allFields))
	f.Add([]byte(`[{"name":"a","cron":"TZ=","signal":"s","payload":{"a":[1,{"b":null}]}}]`))
	f.Add([]byte(`[{"name":"a","name":"a"}, null, 7, [], "x", {"payload":}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := Parse(data)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "scheduledtasks: "), err)
			return
		}
		text, err := json.Marshal(first)
		require.NoError(t, err)
		second, err := Parse(text)
		require.NoError(t, err)
		again, err := json.Marshal(second)
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(again))
	})
}

// Only with a TargetFunc, definitions need no signals. The error names the entry, and the file if
// there is one.
func TestSignalIsOptionalForATargetFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := `[{"name": "a", "cron": "@hourly"}]`
		definitions, err := Parse([]byte(text))
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "schedule.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))

		var tasks []Task
		s, err := Load(path, TargetFunc(func(ctx context.Context, task Task) error {
			tasks = append(tasks, task)
			require.Error(t, Raise(ctx, task), "there is nothing to raise")
			return nil
		}), Options{})
		require.NoError(t, err)
		defer s.Close()
		signals := coretest.Watch(t, s.Sink(), "*")
		time.Sleep(time.Hour)
		synctest.Wait()
		want := Task{Name: "a", ScheduledAt: time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)}
		assert.Equal(t, []Task{want}, tasks)
		fired, _ := Fired.From(signals.ExpectExactly(Fired.Name())[0])
		assert.Equal(t, want, fired)
		data, err := json.Marshal(fired)
		require.NoError(t, err)
		assert.Equal(t, `{"name":"a","scheduledAt":"2000-01-01T01:00:00Z"}`, string(data))
		data, err = json.Marshal(s.Schedules()[0].Definition)
		require.NoError(t, err)
		assert.Equal(t, `{"name":"a","cron":"@hourly"}`, string(data))
		assert.ErrorContains(t, s.Add(t.Context(), Definition{Name: "b", Cron: "@hourly", Signal: " "}), `entry 1, "signal": expected 1 to 200 bytes`)

		wrong := `entry 1, "signal": expected 1 to 200 bytes without commas, wildcards, and blanks around them, got ""`
		j := &journal{}
		_, err = New(definitions, j, Options{})
		assert.EqualError(t, err, "scheduledtasks: "+wrong)
		_, err = Load(path, j, Options{})
		assert.EqualError(t, err, "scheduledtasks: "+path+": "+wrong)
		assert.EqualError(t, open(t, j, Options{}).Add(t.Context(), definitions[0]), "scheduledtasks: "+wrong)
	})
}

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

// Each schedule has its own offset. TestPlanOnAClockThatJumps says what it does.
func TestJitterDiffersBySchedule(t *testing.T) {
	p := newPlan(t, 0, time.Hour, monday, job("a", "@hourly"), job("b", "@hourly"))
	again := newPlan(t, 0, time.Hour, monday, job("a", "@hourly"))
	assert.NotEqual(t, p.entries["a"].offset, p.entries["b"].offset)
	assert.Equal(t, p.entries["a"].offset, again.entries["a"].offset)
}

// The plan is compared with a list of all ticks, on a clock that jumps forward and back.
// Each tick up to the latest time is run or missed, exactly once and in order.
func TestPlanOnAClockThatJumps(t *testing.T) {
	rounds := 8
	if long() {
		rounds = 800
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
