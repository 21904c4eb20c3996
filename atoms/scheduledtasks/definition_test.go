package scheduledtasks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

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
		fired, _ := Tasks.Named(SignalFired).From(signals.ExpectExactly(SignalFired)[0])
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
