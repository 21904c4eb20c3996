package filepipeline

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"testing"
	"testing/fstest"
)

// testImage is a gradient, so that wrong scaling is visible.
func testImage(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetRGBA(x, y, color.RGBA{uint8(x), uint8(y), uint8(x ^ y), 255})
		}
	}
	return img
}

func pngOf(t testing.TB, w, h int) []byte {
	t.Helper()
	return encoded(t, func(b io.Writer) error { return png.Encode(b, testImage(w, h)) })
}

func jpegOf(t testing.TB, w, h int) []byte {
	t.Helper()
	return encoded(t, func(b io.Writer) error { return jpeg.Encode(b, testImage(w, h), nil) })
}

func gifOf(t testing.TB, w, h int) []byte {
	t.Helper()
	return encoded(t, func(b io.Writer) error { return gif.Encode(b, testImage(w, h), nil) })
}

// partialGIF has a screen of w by h, and one frame that covers a corner.
func partialGIF(t testing.TB, w, h int, frame image.Rectangle) []byte {
	t.Helper()
	return encoded(t, func(b io.Writer) error {
		return gif.EncodeAll(b, &gif.GIF{
			Image:  []*image.Paletted{image.NewPaletted(frame, palette.Plan9)},
			Delay:  []int{0},
			Config: image.Config{Width: w, Height: h},
		})
	})
}

func encoded(t testing.TB, encode func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pngBomb is a valid PNG header with a checksum. It declares w by h pixels, but has none.
func pngBomb(w, h uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n")
	b = binary.BigEndian.AppendUint32(b, 13)
	chunk := []byte("IHDR")
	chunk = binary.BigEndian.AppendUint32(chunk, w)
	chunk = binary.BigEndian.AppendUint32(chunk, h)
	chunk = append(chunk, 8, 2, 0, 0, 0) // eight bits, RGB
	b = append(b, chunk...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(chunk))
}

// gifBomb declares a screen of 65535 by 65535.
func gifBomb(t testing.TB) []byte {
	t.Helper()
	data := gifOf(t, 2, 2)
	copy(data[6:], "\xff\xff\xff\xff")
	return data
}

// decodeCause is the error of the standard library for a truncated image.
func decodeCause(t testing.TB, data []byte) string {
	t.Helper()
	_, _, err := image.Decode(bytes.NewReader(data))
	if err == nil {
		t.Fatal("the image decodes")
	}
	return "decode: " + err.Error()
}

func files(data map[string][]byte) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, d := range data {
		fsys[name] = &fstest.MapFile{Data: d}
	}
	return fsys
}

// openFunc intercepts every Open of a file system, to simulate failures of a disk.
type openFunc struct {
	fs.FS
	open func(inner fs.FS, name string) (fs.File, error)
}

func (o openFunc) Open(name string) (fs.File, error) { return o.open(o.FS, name) }

func denied(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
}
