package scheduledtasks

import (
	"cmp"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// spec says at which seconds, the ticks, a schedule is due.
type spec struct {
	cron.SpecSchedule               // the fields; they say when the schedule is due by the wall clock
	fixed             bool          // the fields name fixed times, with numbers and lists only
	every             time.Duration // if positive, the other fields do not count
	zone              *time.Location
}

var macros = map[string]string{
	"@every_second": "* * * * * *", "@every_minute": "0 * * * * *", "@hourly": "0 0 * * * *",
	"@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@weekly": "0 0 0 * * 0",
	"@monthly": "0 0 0 1 * *", "@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *",
}

// The syntax is checked first, because the parsers of package cron panic at some wrong
// texts, and ignore parts of others. They do not accept 7 for Sunday, so weekdays are parsed
// like hours.
const element = `([*?]|([0-9]+|[a-z]{3})(-([0-9]+|[a-z]{3}))?)(/[0-9]+)?`

var (
	syntax    = regexp.MustCompile("^" + element + "(," + element + ")*$")
	parser    = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month)
	weekdays  = cron.NewParser(cron.Hour)
	weekday   = strings.NewReplacer("sun", "0", "mon", "1", "tue", "2", "wed", "3", "thu", "4", "fri", "5", "sat", "6")
	noWeekday = regexp.MustCompile("(^|[,-])([89]|[0-9]{2})")
	zones     sync.Map // loaded time zones, by name
)

// both is the bit that says that day and weekday both have to match. The parsers do not set it for
// */2.
const both = 1 << 63

// parseSpec reads the fields cron, format and timeZone of a definition.
func parseSpec(text, format, zone string) (*spec, error) {
	want := map[string]string{"": "5 or 6", "standard": "5", "includeseconds": "6"}[strings.ToLower(format)]
	if want == "" {
		return nil, wrong("format", "expected Standard or IncludeSeconds, got %.99q", format)
	}
	location, known := zones.Load(zone)
	if !known {
		loaded, err := time.LoadLocation(zone)
		if err != nil {
			return nil, wrong("timeZone", "%v", err)
		}
		location, _ = zones.LoadOrStore(zone, loaded)
	}
	s := &spec{zone: location.(*time.Location)}
	lower := strings.ToLower(strings.TrimSpace(text))
	if every, ok := strings.CutPrefix(lower, "@every "); ok {
		var err error
		if s.every, err = time.ParseDuration(strings.TrimSpace(every)); err != nil || s.every < time.Second || s.every%time.Second != 0 {
			return nil, wrong("cron", "expected whole seconds, such as @every 1h30m, got %.99q", text)
		}
		return s, nil
	}
	got := strings.Fields(lower)
	if macro := macros[lower]; macro != "" {
		got = strings.Fields(macro)
	} else if len(text) > 1000 || !strings.Contains(want, strconv.Itoa(len(got))) || strings.Contains(lower, "tz=") {
		return nil, wrong("cron", "expected %s fields, got %.99q", want, text) // the time zone has a separate field
	} else if len(got) == 5 {
		got = append([]string{"0"}, got...)
	}
	for _, field := range got {
		if !syntax.MatchString(field) {
			return nil, wrong("cron", "%.99q is not supported: write numbers, names, ranges, steps or *, and not L, W or #", field)
		}
	}
	days := weekday.Replace(got[5])
	if noWeekday.MatchString(days) {
		return nil, wrong("cron", "days of the week are from 0 to 7, got %.99q", text)
	}
	parsed, err := parser.Parse(strings.Join(got[:5], " "))
	inWeek, err2 := weekdays.Parse(days)
	if err = cmp.Or(err, err2); err != nil {
		return nil, wrong("cron", "%v, got %.99q", err, text)
	}
	s.SpecSchedule = *parsed.(*cron.SpecSchedule)
	s.Dow, s.Location = inWeek.(*cron.SpecSchedule).Hour, time.UTC
	s.Dow |= s.Dow >> 7 & 1
	s.Dom, s.Dow = s.Dom&^both, s.Dow&^both
	if strings.ContainsAny(got[3][:1]+got[5][:1], "*?") {
		s.Dom |= both
	}
	s.fixed = !strings.ContainsAny(got[0]+got[1]+got[2], "*?/-")
	if s.next(time.Unix(0, 0)).IsZero() {
		return nil, wrong("cron", "there is no such date, got %.99q", text)
	}
	return s, nil
}

// horizon is how far ahead a tick is looked for. A 29 February on a certain weekday has the
// longest gap between two dates: 40 years.
const horizon = 41 * 366 * 24 * time.Hour

// next returns the first tick after t, or the zero time if there is none within horizon.
//
// It walks through the periods in which the zone's offset from UTC is the same. In a
// period, the wall clock shows each second once. At its start, the wall clock jumps from
// where the period before has ended: forward over times that it never shows, or back to
// times that it shows again. Times of the wall clock are written as if they were in UTC.
func (s *spec) next(t time.Time) time.Time {
	if s.every > 0 {
		return t.UTC().Truncate(s.every).Add(s.every) // counted from the year 1
	}
	from := t.UTC().Truncate(time.Second).Add(time.Second)
	for limit := from.Add(horizon); from.Before(limit); {
		here := from.In(s.zone)
		start, end := here.ZoneBounds()
		if end.IsZero() {
			end = limit
		} else if !end.After(from) { // happens on 31 December of some leap years
			end = from.Add(24 * time.Hour)
		}
		offset := offsetAt(here)
		wall := from.Add(offset)
		if s.fixed && !start.IsZero() {
			shown := start.UTC().Add(offsetAt(start.Add(-time.Second))) // the wall clock has shown all earlier times
			if from.Equal(start) || shown.After(wall) {
				wall = shown
			}
		}
		if tick := s.wall(wall, end.UTC().Add(offset)); !tick.IsZero() {
			return later(tick.Add(-offset), from) // a time that the clock jumped over is due at the jump
		}
		from = end.UTC()
	}
	return time.Time{}
}

func offsetAt(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// wall returns the first time of the wall clock from lo to before hi that matches the fields,
// or the zero time.
func (s *spec) wall(lo, hi time.Time) time.Time {
	for ; lo.Before(hi); lo = lo.AddDate(5, 0, 0) { // Next looks no further
		if tick := s.Next(lo.Add(-time.Second)); tick.Before(hi) && !tick.IsZero() {
			return tick
		}
	}
	return time.Time{}
}

// newest returns the last tick after lo and not after hi, or the zero time if there is none
// within horizon.
func (s *spec) newest(lo, hi time.Time) time.Time {
	lo = later(lo, hi.Add(-horizon))
	n := sort.Search(int(max(0, hi.Unix()-lo.Unix())), func(i int) bool {
		next := s.next(time.Unix(lo.Unix()+int64(i), 0))
		return next.IsZero() || next.After(hi)
	})
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(lo.Unix()+int64(n), 0).UTC()
}
