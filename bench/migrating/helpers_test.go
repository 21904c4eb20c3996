package migrating_test

import (
	"context"
	"fmt"
	"strings"
)

// The urls and the get of the examples.
var urls = []string{"/cat", "/dog", "/gone", "/cow"}

// get stands for a request.
func get(ctx context.Context, url string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if url == "/gone" {
		return "", fmt.Errorf("%s: not found", url)
	}
	return strings.ToUpper(url[1:]), nil
}
