package filepipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var testLimits = Limits{MaxBytes: 1 << 20, MaxPixels: 1_000_000}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func TestInspectImage(t *testing.T) {
	still := pngOf(t, 3, 2)
	const header = 33 // the signature and the chunk IHDR
	animated := slices.Concat(still[:header], []byte("\x00\x00\x00\x08acTL\x00\x00\x00\x01\x00\x00\x00\x00\xb4\x2d\xe9\xa0"), still[header:])
	for _, test := range []struct {
		name         string
		data         []byte
		format, mime string
		w, h         int
	}{
		{"png", pngOf(t, 30, 20), "png", "image/png", 30, 20},
		{"jpeg", jpegOf(t, 31, 21), "jpeg", "image/jpeg", 31, 21},
		{"gif", gifOf(t, 32, 22), "gif", "image/gif", 32, 22},
		{"misleading.txt", pngOf(t, 3, 2), "png", "image/png", 3, 2},
		{"animated png", animated, "png", "image/png", 3, 2},
		{"bytes behind the end are hashed too", append(pngOf(t, 3, 2), strings.Repeat("tail", 50_000)...), "png", "image/png", 3, 2},
		{"truncated behind its header", pngOf(t, 300, 200)[:100], "png", "image/png", 300, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := inspect(files(map[string][]byte{test.name: test.data}), test.name, testLimits)
			if err != nil {
				t.Fatal(err)
			}
			want := File{test.name, int64(len(test.data)), sum(test.data), test.mime, test.format, test.w, test.h}
			coretest.Check(t, got == want, "inspect\n got %+v\nwant %+v", got, want)
		})
	}
}

func TestInspectSkips(t *testing.T) {
	for _, test := range []struct {
		name string
		data string
		want Reason
	}{
		{"text.png", "hello", ReasonNoImage},
		{"empty.png", "", ReasonEmpty},
		{"webp", "RIFF\x00\x00\x00\x00WEBPVP8 ", ReasonUnsupported},
		{"bmp", "BM" + strings.Repeat("\x00", 12) + "\x28\x00\x00\x00", ReasonUnsupported},
		{"a signature torn off", "\x89PNG", ReasonNoImage},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := inspect(files(map[string][]byte{test.name: []byte(test.data)}), test.name, testLimits)
			if skipped, ok := errors.AsType[*skipError](err); !ok || skipped.reason != test.want {
				t.Errorf("inspect: %v, want skipped: %s", err, test.want)
			}
		})
	}
}

func TestInspectFails(t *testing.T) {
	brokenHeader := pngOf(t, 3, 2)
	brokenHeader[20] ^= 1 // changes the width, so that the checksum is wrong
	for _, test := range []struct {
		name  string
		data  []byte
		want  string
		w, h  int
		noSum bool
	}{
		{name: "png bomb", data: pngBomb(60_000, 60_000), w: 60_000, h: 60_000,
			want: "declares 60000x60000 = 3600000000 pixels, the limit is 1000000"},
		{name: "gif bomb", data: gifBomb(t), w: 65535, h: 65535,
			want: "declares 65535x65535 = 4294836225 pixels, the limit is 1000000"},
		{name: "a million by one", data: pngBomb(999_999, 1), w: 999_999, h: 1,
			want: "declares 999999x1 pixels, the limit of a side is 100000"},
		{name: "area beyond 64 bits", data: pngBomb(1<<31-1, 1<<31-1), want: "header: png: unsupported feature: dimension overflow"},
		{name: "no area", data: pngBomb(0, 5), want: "header: png: invalid format: non-positive dimension"},
		{name: "checksum", data: brokenHeader, want: "header: png: invalid format: invalid checksum"},
		{name: "png cut in its header", data: pngOf(t, 3, 2)[:20], want: "header: unexpected EOF"},
		{name: "jpeg cut in its header", data: jpegOf(t, 3, 2)[:10], want: "header: unexpected EOF"},
		{name: "gif cut in its header", data: gifOf(t, 3, 2)[:9], want: "header: gif: reading header: unexpected EOF"},
		{name: "too many bytes", data: append(pngOf(t, 3, 2), make([]byte, testLimits.MaxBytes)...), noSum: true,
			want: "bytes, the limit is 1048576"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := inspect(files(map[string][]byte{test.name: test.data}), test.name, testLimits)
			if err == nil || !strings.HasSuffix(err.Error(), test.want) {
				t.Fatalf("inspect: %v, want %s", err, test.want)
			}
			coretest.Check(t, got.Width == test.w && got.Height == test.h, "declared %dx%d, want %dx%d", got.Width, got.Height, test.w, test.h)
			wantSum := sum(test.data)
			if test.noSum {
				wantSum = ""
			}
			if got.SHA256 != wantSum || got.Bytes != int64(len(test.data)) {
				t.Errorf("%d bytes, hash %q; want %d, %q", got.Bytes, got.SHA256, len(test.data), wantSum)
			}
		})
	}
}

func TestInspectUnreadable(t *testing.T) {
	locked := openFunc{fstest.MapFS{}, func(_ fs.FS, name string) (fs.File, error) { return nil, denied("open", name) }}
	_, err := inspect(locked, "x", testLimits)
	if !errors.Is(err, fs.ErrPermission) || cause(err) != "permission denied" {
		t.Errorf("inspect: %v, cause %q; want permission denied", err, cause(err))
	}
	_, err = inspect(fstest.MapFS{"x": {Mode: fs.ModeNamedPipe}}, "x", testLimits)
	coretest.Check(t, err != nil && err.Error() == "no longer a regular file", "inspect of what became a pipe: %v", err)
}

// A file may grow while it is read. Then its size does not bound the bytes that are read.
func TestInspectGrowingFile(t *testing.T) {
	data := pngOf(t, 3, 2)
	endless := openFunc{files(map[string][]byte{"log.png": data}), func(inner fs.FS, name string) (fs.File, error) {
		f, err := inner.Open(name)
		return &endlessFile{f, bytes.NewReader(data)}, err
	}}
	got, err := inspect(endless, "log.png", testLimits)
	coretest.Check(t, err != nil && err.Error() == "grew past the limit of 1048576 bytes", "inspect: %v", err)
	coretest.Check(t, got.SHA256 == "", "a hash of half a file")
}

type endlessFile struct {
	fs.File
	first *bytes.Reader
}

func (f *endlessFile) Read(p []byte) (int, error) {
	if n, err := f.first.Read(p); err == nil {
		return n, nil
	}
	clear(p)
	return len(p), nil
}
