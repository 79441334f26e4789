"""Backstage software templates: parse, judge forms, render files, exactly or not at all."""
