// Package resize shows nested coordinators: an operation for each image, with a child for
// each of its sizes. Parents and children are linked by their ids.
package resize

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"

	"golang.org/x/image/draw"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario resizes images that it draws, into a temporary directory.
var Scenario = scenario.Scenario{
	Name:  "resize",
	Title: "Nested resize: images, and their sizes as children",
	Run:   run,
}

const images, parallelism = 4, 2

var sizes = []size{{"tiny", 33}, {"small", 67}, {"medium", 133}, {"large", 267}, {"xlarge", 400}, {"xxlarge", 640}}

// FileSaved is raised by a child: the key is the path, the payload the number of bytes.
var FileSaved = signals.NewKind[int]("file.saved")

type size struct {
	name  string
	width int
}

type child struct {
	from image.Image
	dir  string
	size size
}

func run(ctx context.Context, s *scenario.Screen) error {
	dir, err := os.MkdirTemp("", "resize-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	children, err := core.NewCoordinator(resize, core.Options{Name: "sizes", Sink: s.Sink, MaxConcurrency: parallelism, CancelOn: "resize.stop"})
	if err != nil {
		return err
	}
	parents, err := core.NewCoordinator(func(ctx context.Context, n int) error {
		op := core.OperationFrom(ctx)
		op.Raise("resize.parallel.started")
		from, target := photo(n), filepath.Join(dir, fmt.Sprintf("image-%d", n))
		err := os.Mkdir(target, 0o700)
		// The context names the parent of the children. Wait waits only for these children.
		group := children.Group(ctx, core.GroupOptions{})
		for _, size := range sizes {
			_, refused := group.Enqueue(ctx, child{from, target, size})
			err = errors.Join(err, refused)
		}
		op.Raise("resize.parallel.enqueued")
		if err = errors.Join(err, group.Wait()); err == nil {
			op.Raise("resize.parallel.complete")
		}
		return err
	}, core.Options{Name: "images", Sink: s.Sink, MaxConcurrency: parallelism})
	if err != nil {
		return err
	}
	stages := core.InOrder(parents, children)
	defer stages.Close()

	s.Printf("%d images, %d sizes each, %d at once", images, len(sizes), parallelism)
	for n := range images {
		if _, err := parents.Enqueue(ctx, n); err != nil {
			return err
		}
	}
	if err := parents.Flush(ctx); err != nil {
		return err
	}
	linked, ids, written := 0, map[core.OperationID][]core.OperationID{}, map[core.OperationID]int{}
	for op := range children.Operations(core.OperationQuery{Status: core.StatusSucceeded}) {
		ids[op.Parent] = append(ids[op.Parent], op.ID)
		for _, bytes := range FileSaved.Sense(s.Sink, signals.Query{Operation: op.ID}) {
			written[op.Parent] += bytes
		}
	}
	for op := range parents.Operations(core.OperationQuery{}) {
		if op.Err != nil {
			return op.Err
		}
		linked += len(ids[op.ID])
		s.Printf("operation %v: children %v, %d kB", op.ID, ids[op.ID], written[op.ID]/1000)
	}

	// A signal stops the next image at its first file: running sizes are finished, and
	// CancelOn refuses the others.
	defer FileSaved.Subscribe(s.Sink, func(signals.Signal, int) { s.Sink.Raise("resize.stop") })()
	defer s.Sink.Retract("resize.stop")
	err = parents.Do(ctx, images)
	if _, refused := errors.AsType[*core.RefusedError](err); !refused {
		return cmp.Or(err, errors.New("resize: resize.stop refused nothing"))
	}
	if err := stages.Drain(ctx); err != nil {
		return err
	}
	end := children.Stats()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.jpg"))
	if err != nil || linked != images*len(sizes) || len(files) != int(end.Succeeded) {
		return fmt.Errorf("resize: %d linked, %d succeeded, %d files", linked, end.Succeeded, len(files))
	}
	s.Takeaway("%d children of %d parents; %d files for %d sizes; resize.stop refused %d",
		linked, images, len(files), end.Succeeded, end.Refused+end.Rejected)
	return nil
}

// resize is the body of a child: it writes one size of one image.
func resize(ctx context.Context, c child) error {
	op := core.OperationFrom(ctx)
	op.Raise("resize." + c.size.name + ".started")
	to := image.NewRGBA(image.Rect(0, 0, c.size.width, c.size.width*2/3))
	draw.ApproxBiLinear.Scale(to, to.Bounds(), c.from, c.from.Bounds(), draw.Src, nil)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, to, &jpeg.Options{Quality: 90}); err != nil {
		return err
	}
	path := filepath.Join(c.dir, c.size.name+".jpg")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		return err
	}
	FileSaved.Raise(op, path, b.Len())
	op.Raise("resize." + c.size.name + ".complete")
	return nil
}

// photo draws an image in the format 3:2, with colours that depend on n.
func photo(n int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, 960, 640))
	for i := range 40 {
		paint := image.NewUniform(color.RGBA{uint8(60 * n), uint8(6 * i), 200, 255})
		draw.Draw(img, image.Rect(12*i, 8*i, 960-12*i, 640-8*i), paint, image.Point{}, draw.Src)
	}
	return img
}
