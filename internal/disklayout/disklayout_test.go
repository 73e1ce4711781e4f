package disklayout

import "testing"

func TestNew(t *testing.T) {
	l, err := New("seed", 512<<20, 100<<20+1)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(FirstOffset)
	guids := map[string]bool{l.GUID: true}
	for i, p := range l.Partitions {
		if p.Number != i+1 || p.Offset != at || p.Size%Alignment != 0 || p.Offset%Alignment != 0 {
			t.Errorf("partition %+v is out of place", p)
		}
		if guids[p.GUID] {
			t.Errorf("GUID of %s is used twice", p.Name)
		}
		guids[p.GUID] = true
		at += p.Size
	}
	if l.Size < at+33*512 {
		t.Errorf("no room for the backup table: %d bytes after %d", l.Size, at)
	}
	again, _ := New("seed", 512<<20, 100<<20+1)
	other, _ := New("other", 512<<20, 100<<20+1)
	if again.GUID != l.GUID || other.GUID == l.GUID {
		t.Error("GUIDs must follow the seed and nothing else")
	}
}

func TestNewStick(t *testing.T) {
	l, err := NewStick("seed", MinESP, 100<<20+1)
	if err != nil {
		t.Fatal(err)
	}
	bundle, ok := l.Find(NameBundle)
	if !ok || bundle.Number != 2 || bundle.Size != 101<<20 || bundle.Offset != FirstOffset+MinESP || l.Size != bundle.Offset+bundle.Size+Alignment {
		t.Errorf("%+v", l)
	}
	for _, name := range []string{NameESP, NameSlotA, NameSlotB, NameSeed, NameState, NameData} {
		if _, there := l.Find(name); there {
			t.Errorf("a stick with a partition %s is taken for a node's disk", name)
		}
	}
	if other, _ := NewStick("other", MinESP, 100<<20+1); other.GUID == l.GUID {
		t.Error("two sticks with one GUID")
	}
	for _, size := range [][2]int64{{MinESP - 1, 1}, {MinESP, 0}} {
		if _, err := NewStick("s", size[0], size[1]); err == nil {
			t.Errorf("%d went through", size)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New("s", MinESP-1, 1<<20); err == nil {
		t.Error("a small EFI system partition went through")
	}
	if _, err := New("s", MinESP, 0); err == nil {
		t.Error("an empty slot went through")
	}
}

func TestSlotSizeLeavesRoom(t *testing.T) {
	for _, content := range []int64{1, 10 << 20, 3 << 30} {
		got := SlotSize(content)
		if got < content+content/3 || got < content+64<<20 || got%Alignment != 0 {
			t.Errorf("SlotSize(%d) = %d", content, got)
		}
	}
}
