package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// Options configure the table of a store. The zero value is the default.
type Options struct {
	// Schema and Table name the table of the values; "" means "public" and "data".
	// [data.CheckName] has the rules. Upper and lower case are different.
	Schema, Table string
	// CreateSchema makes New also create the schema if it does not exist.
	CreateSchema bool
	// Bytes stores the values as BYTEA instead of JSONB, so the bytes do not change.
	bytes bool
	// Notify is the channel of a NOTIFY in the transaction of each change; [KeyHash] describes
	// the payload. It has at most 63 bytes. "" means none. A notification makes saves 5 to 15
	// percent slower.
	Notify string
	// RetryFor is how long an operation is tried again if it has certainly changed nothing:
	// there was no connection, or the server has rolled back a deadlock. 0 means 5 seconds,
	// negative not at all. When the context of the operation ends, it is not tried again.
	RetryFor time.Duration
}

func (o Options) resolved() (Options, error) {
	o.Schema, o.Table = cmp.Or(o.Schema, "public"), cmp.Or(o.Table, "data")
	o.RetryFor = cmp.Or(o.RetryFor, 5*time.Second)
	var errs []error
	for _, name := range []struct{ option, value string }{{"Schema", o.Schema}, {"Table", o.Table}} {
		if data.CheckName(name.value) != nil {
			errs = append(errs, fmt.Errorf("postgres: Options.%s must have 1 to 63 letters, digits and underscores and not begin with a digit, not %q", name.option, name.value))
		}
	}
	if len(o.Notify) > 63 {
		errs = append(errs, fmt.Errorf("postgres: Options.Notify must have at most 63 bytes, not %d", len(o.Notify)))
	}
	return o, errors.Join(errs...)
}

// column returns the type of the column of the values.
func (o Options) column() string {
	if o.bytes {
		return "bytea"
	}
	return "jsonb"
}
