package main

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counted counts the bytes that were read.
type counted struct {
	io.Reader
	bytes atomic.Int64
}

func (c *counted) Read(p []byte) (n int, err error) {
	n, err = c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// A slow database stops the reader after some rows. In the end all rows are imported, and
// those that are wrong are listed.
func TestImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := example()
		file := &counted{Reader: strings.NewReader(text)}
		var customers []customer
		insert := func(_ context.Context, batch []customer) error {
			if len(customers) == 0 {
				time.Sleep(time.Hour)
			}
			customers = append(customers, batch...)
			return nil
		}
		time.AfterFunc(time.Hour-1, func() {
			if n := file.bytes.Load(); n > 20_000 || n < 5_000 {
				t.Errorf("%d of %d bytes were read before the first batch was inserted", n, len(text))
			}
		})
		var out strings.Builder
		if err := imports(t.Context(), file, int64(len(text)), insert, &out); err != nil {
			t.Fatal(err)
		}
		want := `
[####################] 100 %
line 1234: the name is missing
line 4711: "young" is no age
4998 customers in 50 batches
`
		if lines := strings.Split(out.String(), "\r"); "\n"+lines[len(lines)-1] != want || len(customers) != 4998 {
			t.Errorf("%d customers\n%s", len(customers), &out)
		}
	})
}
