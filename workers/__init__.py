"""Background work: claims jobs, crawls, settles pages."""
