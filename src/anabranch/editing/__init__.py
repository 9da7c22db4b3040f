"""What editors need: colours, completion, and what is wrong with a workbook while it is typed. Needs no Spark."""
