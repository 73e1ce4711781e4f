package usb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/progress"
)

// Options says what to write where.
type Options struct {
	Content  Content
	Device   string // path
	Serial   string // of the device
	Host     Host
	Progress progress.Reporter
}

// Job is a write that nothing speaks against so far.
type Job struct {
	Device  Device
	content Content
	host    Host
	request Request
}

// Prepare finds everything that can be refused or is broken, before anything on
// the device is lost. What costs most comes last.
func Prepare(ctx context.Context, o Options) (*Job, error) {
	j := &Job{content: o.Content, host: o.Host}
	disk := o.Content.Disk()
	j.request = Request{Serial: o.Serial, Need: disk.Size, SectorSize: disk.SectorSize}
	var err error
	if j.Device, err = o.Host.Find(o.Device); err != nil {
		return nil, err
	}
	if err := refused(j.Device, Check(j.Device, j.request)); err != nil {
		return nil, err
	}
	if err := o.Content.Check(ctx, o.Progress); err != nil {
		return nil, err
	}
	return j, nil
}

// Write opens the device, looks at it once more, and writes it: since Prepare it
// may have been mounted, or pulled and another one plugged in.
func (j *Job) Write(ctx context.Context, p progress.Reporter) error {
	t, err := j.host.open(j.Device)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	now, err := j.host.Find(j.Device.Path)
	if err == nil {
		err = refused(now, Check(now, j.request))
	}
	if err == nil && (now.Number != j.Device.Number || now.Size != j.Device.Size) {
		err = exit.With(exit.Refused, fmt.Errorf("%s is another device than before, nothing was written", now.Path))
	}
	if err == nil {
		err = Write(ctx, j.content, t, p)
	}
	return errors.Join(err, t.Close())
}

// refused makes an error of the reasons against a device.
func refused(d Device, reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	err := fmt.Errorf("%s (%s) is not written to:\n  %s", d.Path, d.Title(), strings.Join(reasons, "\n  "))
	return exit.With(exit.Refused, diag.WithHint(err, "imagebuild usb --list shows all devices, their serial numbers and what speaks against them"))
}

// Describe writes what the device is and what will be lost.
func Describe(w io.Writer, d Device) {
	fmt.Fprintf(w, "%s will be erased:\n", d.Path)
	fmt.Fprintf(w, "  model   %s\n  serial  %s\n", d.Title(), d.Serial)
	if d.Content != "" {
		fmt.Fprintf(w, "  holds   %s\n", d.Content)
	}
	for _, p := range d.Parts {
		fmt.Fprintf(w, "  %s  %s\n", p.Name, p.text())
	}
	if len(d.Parts) == 0 && d.Content == "" {
		fmt.Fprintln(w, "  no partitions, and no file system that is known here")
	}
}

// text is a partition in words: size, file system, labels.
func (p Part) text() string {
	words := []string{bytesText(p.Size)}
	if p.Type != "" {
		words = append(words, p.Type)
	}
	if p.Label != "" {
		words = append(words, fmt.Sprintf("%q", p.Label))
	}
	if p.Title != "" && p.Title != p.Label {
		words = append(words, fmt.Sprintf("(%q)", p.Title))
	}
	return strings.Join(words, " ")
}

// Listed is a device with what speaks against it.
type Listed struct {
	Device
	Refusals []string `json:"refusals"`
}

// Survey lists the devices of the machine, those that can be written first, by what
// is to be written when that is known. Loop and memory devices are left out: nobody
// takes them for a stick.
func Survey(h Host, need *Request) ([]Listed, error) {
	devices, err := h.List()
	if err != nil {
		return nil, err
	}
	yes, no := []Listed{}, []Listed{}
	for _, d := range devices {
		if d.Kind == Loop || d.Kind == Virtual {
			continue
		}
		l := Listed{Device: d, Refusals: Candidate(d)}
		if d.Serial == "" {
			l.Refusals = append(l.Refusals, "it has no serial number, so that it cannot be told from another device")
		}
		if need != nil && d.Size > 0 {
			l.Refusals = append(l.Refusals, unfit(d, *need)...)
		}
		if len(l.Refusals) == 0 {
			l.Refusals = []string{}
			yes = append(yes, l)
			continue
		}
		no = append(no, l)
	}
	return append(yes, no...), nil
}
