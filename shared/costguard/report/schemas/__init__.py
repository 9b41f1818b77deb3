"""The schema files of JSON answers, made from `shapes` of each folder; `values` are the parts that many share."""
