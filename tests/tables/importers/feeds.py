"""Green Button files for tests, written piece by piece."""

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
ESPI = 'xmlns="http://naesb.org/espi"'


def entry(body, own="", up="", related=(), title=""):
    """An entry of the feed with its links."""
    links = f'<link rel="self" href="{own}"/>' if own else ""
    links += f'<link rel="up" href="{up}"/>' if up else ""
    links += "".join(f'<link rel="related" href="{each}"/>' for each in related)
    return f"<entry><id>x</id>{links}<title>{title}</title><content>{body}</content></entry>\n"


def usage_point(own="", up="", related=(), title=""):
    body = f"<UsagePoint {ESPI}><ServiceCategory><kind>0</kind></ServiceCategory></UsagePoint>"
    return entry(body, own, up, related, title)


def meter_reading(own="", up="", related=()):
    return entry(f"<MeterReading {ESPI}/>", own, up, related)


def reading_type(own="", uom=72, power=0, flow=1, length=3600, behaviour=4):
    body = (
        f"<ReadingType {ESPI}><accumulationBehaviour>{behaviour}</accumulationBehaviour>"
        f"<flowDirection>{flow}</flowDirection><intervalLength>{length}</intervalLength>"
        f"<powerOfTenMultiplier>{power}</powerOfTenMultiplier><uom>{uom}</uom></ReadingType>"
    )
    return entry(body, own)


def local_time(offset=-18000, saving=3600, begin="360E2000", end="B40E2000", own=""):
    body = (
        f"<LocalTimeParameters {ESPI}><dstEndRule>{end}</dstEndRule><dstOffset>{saving}</dstOffset>"
        f"<dstStartRule>{begin}</dstStartRule><tzOffset>{offset}</tzOffset></LocalTimeParameters>"
    )
    return entry(body, own)


def interval(start, value, duration=3600, quality=None):
    told = f"<ReadingQuality><quality>{quality}</quality></ReadingQuality>" if quality else ""
    return (
        f"<IntervalReading>{told}<timePeriod><duration>{duration}</duration>"
        f"<start>{start}</start></timePeriod><value>{value}</value></IntervalReading>"
    )


def block(*readings, own="", up=""):
    return entry(f"<IntervalBlock {ESPI}>{''.join(readings)}</IntervalBlock>", own, up)


def write_feed(tmp_path, *entries, name="usage.xml"):
    path = tmp_path / name
    path.write_text(HEAD + "".join(entries) + "</feed>\n", encoding="utf-8")
    return path
