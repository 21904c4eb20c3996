package scheduledtasks

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const allFields = `[{"name": "report", "cron": "0 9 * * MON-FRI", "signal": "report.due", "key": "sales", "payload": {"file": "a.csv"},
	"description": "daily sales", "timeZone": "Europe/Berlin", "format": "standard", "runOnStartup": true},
	{"name": "tick", "cron": "@every_second", "signal": "tick", "key": null}]`

func TestAllFieldsOfJSON(t *testing.T) {
	got, err := Parse([]byte(allFields))
	require.NoError(t, err)
	assert.Equal(t, []Definition{{
		Name: "report", Cron: "0 9 * * MON-FRI", Signal: "report.due", Key: "sales", Payload: json.RawMessage(`{"file": "a.csv"}`),
		Description: "daily sales", TimeZone: "Europe/Berlin", Format: "standard", RunOnStartup: true,
	}, {Name: "tick", Cron: "@every_second", Signal: "tick"}}, got)
}

// Weak points of the original: unknown fields, and optional fields of the wrong type, were
// ignored.
func TestErrorsOfJSONNameEntryAndField(t *testing.T) {
	for text, want := range map[string]string{
		``:      `expected a JSON array of objects: unexpected end of JSON input`,
		`null`:  `expected a JSON array of objects: <nil>`,
		`{}`:    `expected a JSON array of objects: json: cannot unmarshal object into Go value of type []json.RawMessage`,
		`[] []`: `expected a JSON array of objects: invalid character '[' after top-level value`,
		`[7]`:   `entry 1, "7": expected an object`,
		`[{"name": "a", "cron": "* * * * *", "signal": "s"}, {"Name": "b"}]`: `entry 2, "Name": there is no such field, or it is given twice`,
		`[{"name": "a", "name": "b"}]`:                                       `entry 1, "name": there is no such field, or it is given twice`,
		`[{"name": "a", "runOnStartup": "true"}]`:                            `entry 1, "runOnStartup": expected a bool, got a string`,
		`[{"name": "a", "key": 7}]`:                                          `entry 1, "key": expected a string, got a number`,
		`[{"cron": "* * * * *", "signal": "s"}]`:                             `entry 1, "name": expected 1 to 200 bytes without commas, wildcards, and blanks around them, got ""`,
		`[{"name": "a", "cron": "* * * * *"}]`:                               `entry 1, "signal": expected 1 to 200 bytes without commas, wildcards, and blanks around them, got ""`,
		`[{"name": "a", "cron": "* * * * *", "signal": "job.*"}]`:            `entry 1, "signal": expected 1 to 200 bytes without commas, wildcards, and blanks around them, got "job.*"`,
		`[{"name": "a", "signal": "s"}]`:                                     `entry 1, "cron": expected 5 or 6 fields, got ""`,
		`[{"name": "a", "cron": "every day", "signal": "s"}]`:                `entry 1, "cron": expected 5 or 6 fields, got "every day"`,
		`[{"name": "a", "cron": "* * * * *", "signal": "s"}, {"name": "a", "cron": "* * * * *", "signal": "s"}]`: `entry 2, "name": "a" is the name of entry 1`,
		`[{"name": "` + strings.Repeat("a", 201) + `", "cron": "* * * * *", "signal": "s"}]`:                     `entry 1, "name": expected 1 to 200 bytes without commas, wildcards, and blanks around them, got "` + strings.Repeat("a", 99) + `"`,
	} {
		_, err := Parse([]byte(text))
		assert.EqualError(t, err, "scheduledtasks: "+want)
	}
}

// What is accepted can be written and read again, and means the same.
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
