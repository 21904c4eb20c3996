package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"path"
	"testing/fstest"
	"time"
)

// album is a directory in memory: images of three formats, some of them torn or there twice,
// and texts.
func album() (fs.FS, error) {
	files := fstest.MapFS{}
	for i := range 20 {
		var asPNG, asJPEG, asGIF bytes.Buffer
		img := image.NewPaletted(image.Rect(0, 0, 200+20*i, 150+10*i), color.Palette{color.Black, color.White})
		for x := range img.Rect.Dx() {
			img.SetColorIndex(x, x%(i+2), 1)
		}
		if err := errors.Join(png.Encode(&asPNG, img), jpeg.Encode(&asJPEG, img, nil), gif.Encode(&asGIF, img, nil)); err != nil {
			return nil, err
		}
		add := func(name string, data []byte) {
			files[fmt.Sprintf("day-%d/%02d-%s", i/5, i, name)] = &fstest.MapFile{Data: data}
		}
		add("photo.jpg", asJPEG.Bytes())
		add("drawing.png", asPNG.Bytes())
		switch i % 5 {
		case 1:
			add("copy.png", asPNG.Bytes())
		case 2:
			add("torn.jpg", asJPEG.Bytes()[:asJPEG.Len()/2])
		case 3:
			add("notes.txt", []byte("no image"))
		default:
			add("animation.gif", asGIF.Bytes())
		}
	}
	return slowFS{files}, nil
}

// slowFS needs a while for each file, so that a person can watch.
type slowFS struct{ fs.FS }

func (s slowFS) Open(name string) (fs.File, error) {
	if path.Ext(name) != "" {
		time.Sleep(50 * time.Millisecond)
	}
	return s.FS.Open(name)
}
