package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The urls and the get of the examples.
var urls = []string{"/cat", "/dog", "/gone", "/cow"}

// errGone is the answer of get for a page that is not there.
var errGone = errors.New("not found")

// get stands for a request.
func get(ctx context.Context, url string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if url == "/gone" {
		return "", fmt.Errorf("%s: %w", url, errGone)
	}
	return strings.ToUpper(url[1:]), nil
}

// Visit is an item that leaves the process.
type Visit struct{ URL string }

func (Visit) Kind() string   { return "visit" } // for River
func (v Visit) Page() string { return v.URL }   // the key

var visited = make(chan string, 1)

// visit is the work of such an item.
func visit(ctx context.Context, v Visit) error {
	_, err := get(ctx, v.URL)
	visited <- v.URL
	return err
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
