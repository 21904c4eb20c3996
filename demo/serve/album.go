package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"path"
	"testing/fstest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// album is a directory in memory with images and texts. Some images are duplicates or
// damaged.
func album() fs.FS {
	files := fstest.MapFS{}
	for i := range 240 {
		var encoded bytes.Buffer
		core.Must(0, png.Encode(&encoded, image.NewGray(image.Rect(0, 0, 200+(i/2), 150))))
		data := encoded.Bytes()
		switch i % 12 {
		case 5:
			data = data[:len(data)/2]
		case 7:
			data = []byte("no image")
		}
		files[fmt.Sprintf("day-%d/%03d.png", i/20, i)] = &fstest.MapFile{Data: data}
	}
	return slowFS{files}
}

// slowFS needs some time for each file, so that a person can watch.
type slowFS struct{ fs.FS }

var opening = 50 * time.Millisecond // a file

func (s slowFS) Open(name string) (fs.File, error) {
	if path.Ext(name) != "" {
		time.Sleep(opening)
	}
	return s.FS.Open(name)
}
